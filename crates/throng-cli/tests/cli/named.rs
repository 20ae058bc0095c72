//! Steps with a name and transactions, against a server in another language.

use serde_json::Value;

use crate::process::TestDir;

/// A server of lines that takes ten times as long for one question as for the other.
const SERVER: &str = "import asyncio
async def serve(reader, writer):
    while line := await reader.readline():
        await asyncio.sleep(0.05 if line == b'cart\\n' else 0.005)
        writer.write(b'ok ' + line)
    writer.close()
async def main():
    server = await asyncio.start_server(serve, '127.0.0.1', 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
";

const USER: &str = "
  - connect: {name: login}
  - repeat:
      for: 1s
      do:
        - transaction:
            name: checkout
            do:
              - send: \"cart\\n\"
              - expect: {until: \"\\n\", name: cart, timeout: 60s}
              - send: \"pay\\n\"
              - expect: {until: \"\\n\", name: pay, timeout: 60s}
  - close
thresholds:
  - step.cart.p5 < 1h
  - step.pay.p5 < 1h
  - step.checkout.p99.99 < 1ms
  - step.checkout.errors < 1%
";

/// Returns the steps of this name in a summary.
fn step<'a>(summary: &'a Value, name: &str) -> &'a Value {
    let steps = summary["steps"].as_array().expect("steps");
    steps.iter().find(|step| step["name"] == name).unwrap_or_else(|| panic!("{name}: {summary}"))
}

#[test]
fn each_step_with_a_name_is_measured_apart() {
    let place = TestDir::new();
    let Some((_server, port)) = place.python(SERVER) else { return };
    let load = "[{ramp: {to: 4, over: 200ms}}, {hold: {for: 3s}}]";
    let scenario = format!("target: tcp://127.0.0.1:{port}\nload: {load}\nuser:{USER}");
    place.write("shop.yaml", &scenario);
    let finished = place.throng(&["run", "shop.yaml", "--json", "out.json", "--interval", "250ms"]);
    // A threshold is missed. A busy machine can make the generator late, which makes the run
    // invalid and has no other effect.
    assert!(matches!(finished.code, Some(1 | 3)), "{finished:#?}");
    let summary = place.json("out.json");

    let names = summary["steps"].as_array().unwrap().iter().map(|step| step["name"].clone());
    assert_eq!(names.collect::<Vec<_>>(), ["login", "checkout", "cart", "pay"]);
    let number = |name: &str, field: &str| {
        let value = field.split('/').fold(step(&summary, name), |value, key| &value[key]);
        value.as_f64().unwrap_or_else(|| panic!("{name}/{field} in {summary}"))
    };
    let judged = |at: usize| summary["thresholds"][at]["value"].as_f64().unwrap();
    // The fastest answers are those that a busy machine has delayed least.
    assert!(judged(0) > 2.0 * judged(1), "{} and {}", judged(0), judged(1));
    assert!(number("cart", "latency_us/mean") > number("pay", "latency_us/mean"));
    assert_eq!(summary["thresholds"][2]["met"], false);
    assert_eq!(summary["thresholds"][3]["met"], true, "{}", summary["thresholds"]);

    let (ok, waiting) = (number("checkout", "ok"), number("checkout", "waiting"));
    assert!(ok >= 4.0 && number("login", "ok") >= 4.0, "{summary}");
    assert_eq!(number("pay", "ok"), ok, "each transaction ends with the answer to `pay`");
    assert!((ok..=ok + waiting).contains(&number("cart", "ok")), "{summary}");
    let messages = summary["message"]["answered"].as_f64().unwrap();
    assert_eq!(number("cart", "ok") + number("pay", "ok"), messages, "each counts in its kind");
    let total = |name: &str| number(name, "seen_us/mean") * number(name, "seen_us/count");
    // Those that the end has cut off between the two are in `cart` alone.
    let (parts, cut) = (total("cart") + total("pay"), waiting * number("cart", "seen_us/max"));
    let whole = total("checkout");
    assert!((0.97 * (parts - cut)..=1.03 * parts).contains(&whole), "{whole} of {parts}");

    for name in ["login", "checkout", "cart", "pay"] {
        let row = finished.stdout.lines().find(|line| line.starts_with(&format!("{name} ")));
        assert!(row.is_some(), "{name}: {}", finished.stdout);
    }
    let report = ["report", "-o", "run.csv", "-o", "run.md", "-o", "run.html", "-o", "run.json"];
    let _ = place.throng(&report);
    assert_eq!(place.json("run.json")["steps"], summary["steps"], "the run file has it all");
    let read = |name: &str| std::fs::read_to_string(place.path(name)).unwrap();
    assert!(read("run.csv").contains(",step.cart.p95,latency,us,"), "{}", read("run.csv"));
    assert!(read("run.csv").contains(",step.pay.ok,counter,,"));
    assert!(read("run.md").contains("| checkout | "), "{}", read("run.md"));

    let same = ["compare", "run.jsonl", "run.jsonl", "--regression", "step.cart.p99.9 > +1%"];
    let compared = place.throng(&same);
    assert!(compared.stdout.contains("cart p95"), "{compared:#?}");
    assert_eq!(compared.code, Some(if finished.code == Some(3) { 3 } else { 0 }));
}
