// What npm's clients make of a server's message, over a transport that is only an object. The channel `rooms:a` is
// joined with ref 3 and waits for the reply to its push 4; ref 1 is the join of another channel, ref 2 a push in it.

import { createRequire } from "node:module"
import * as phoenix from "phoenix"

const require = createRequire(import.meta.url)

/** The first and the last of npm are 1.2 and 1.8. Each is the last release of its series. */
export const CLIENTS = Object.fromEntries(
  ["1.2", "1.3", "1.4", "1.5", "1.6", "1.7"].map(series => [series, require(`phoenix-${series}`)]),
)
CLIENTS["1.8"] = phoenix

const TOPIC = "rooms:a"
const EVENTS = ["phx_error", "phx_close"]
const JSON_CODEC = {
  vsn: "1.0.0",
  encode: (message, callback) => callback(JSON.stringify(message)),
  decode: (text, callback) => callback(JSON.parse(text)),
}

/** The messages of both versions; `expected` of throng is needed where the clients differ. */
export function messages() {
  const v2 = (elements, expected) => ({ vsn: "2.0.0", frame: JSON.stringify(elements), expected })
  const v1 = (object, expected) => ({ vsn: "1.0.0", frame: JSON.stringify(object), expected })
  const ok = { status: "ok", response: { a: 1 } }
  return EVENTS.flatMap(event => [
    ...[["3", "3"], ["3", null], ["3", "4"], [null, null], [null, "3"], [null, "4"], [null, "1"], [null, "99"], ["", ""]]
      .map(([join_ref, ref]) => v2([join_ref, ref, TOPIC, event, {}])),
    ...[["1", "1"], ["99", null], [3, "3"], [true, null], [{}, null]].map(([join_ref, ref]) => v2([join_ref, ref, TOPIC, event, {}])),
    ...[[0, null], [false, false], [null, 4], [null, {}]].map(([join_ref, ref]) => v2([join_ref, ref, TOPIC, event, {}])),
    v2(["3", "3", "rooms:b", event, {}]), v2([null, null, "rooms:b", event, {}]), v2([null, null, "phoenix", event, {}]),
    v2([null, null, TOPIC, event, { reason: "x" }]), v2([null, null, TOPIC, event, []]), v2([null, null, TOPIC, event, {}, "more"]),
    v2([null, null, TOPIC, event, null], OUTCOMES[event]), v2([null, null, TOPIC, event], OUTCOMES[event]),
    ...[{ ref: "3" }, { ref: null }, {}, { ref: "" }, { ref: "3", join_ref: "3" }, { ref: null, join_ref: null }]
      .map(refs => v1({ topic: TOPIC, event, payload: {}, ...refs })),
    // Before 1.3 the ref had to be that of the join; since then it is of no account.
    ...[{ ref: "4" }, { ref: "99" }, { ref: 4 }].map(refs => v1({ topic: TOPIC, event, payload: {}, ...refs }, OUTCOMES[event])),
    // The end of an earlier channel, after a join in its place: only 1.2, which speaks this version, knows it.
    ...[{ ref: "1" }, { ref: "2" }].map(refs => v1({ topic: TOPIC, event, payload: {}, ...refs }, "nothing")),
    // 1.2 knows no join_ref.
    v1({ topic: TOPIC, event, payload: {}, ref: "3", join_ref: "1" }, "nothing"),
    v1({ topic: TOPIC, event, payload: {}, ref: null, join_ref: "1" }, "nothing"),
    v1({ topic: TOPIC, event, payload: {}, ref: "1", join_ref: "3" }, OUTCOMES[event]),
    v1({ topic: "rooms:b", event, payload: {}, ref: null }), v1({ topic: "rooms:b", event, payload: {}, ref: "3" }),
    v1({ topic: TOPIC, event, ref: null }, OUTCOMES[event]), v1({ topic: TOPIC, event, payload: null, ref: null }, OUTCOMES[event]),
  ]).concat(
    [["3", "4"], [null, "4"], ["3", 4], ["", "4"], ["3", "5"], ["3", null], [null, null]]
      .map(([join_ref, ref]) => v2([join_ref, ref, TOPIC, "phx_reply", ok])),
    [["1", "4"], ["99", "4"], [3, "4"]].map(([join_ref, ref]) => v2([join_ref, ref, TOPIC, "phx_reply", ok])),
    v2(["3", "4", "rooms:b", "phx_reply", ok]), v2(["3", "4", TOPIC, "phx_reply", ok, "more"]),
    v2(["3", "4", TOPIC, "phx_reply", { status: "ok" }]), v2(["3", "4", TOPIC, "phx_reply", { status: "ok", response: "fine" }]),
    v2(["3", "4", TOPIC, "phx_reply", { status: "error", response: {} }]), v2(["3", "4", TOPIC, "phx_reply", { status: "error" }]),
    [{ ref: "4" }, { ref: 4 }, { ref: "4", join_ref: "3" }, { ref: "4", join_ref: null }, { ref: "5" }, { ref: null }, {}]
      .map(refs => v1({ topic: TOPIC, event: "phx_reply", payload: ok, ...refs })),
    v1({ topic: TOPIC, event: "phx_reply", payload: ok, ref: "4", join_ref: "1" }, "nothing"),
    v1({ topic: "rooms:b", event: "phx_reply", payload: ok, ref: "4" }),
    v1({ topic: TOPIC, event: "phx_reply", payload: { status: "ok" }, ref: "4" }),
    v1({ topic: TOPIC, event: "phx_reply", payload: { status: "error" }, ref: "4" }),
    v2([null, null, TOPIC, "new_msg", {}]), v2(["3", null, TOPIC, "phx_leave", {}]), v1({ topic: TOPIC, event: "new_msg", payload: {} }),
  )
}

const OUTCOMES = { phx_error: "error", phx_close: "close" }

/** Gives one message to one client and returns what its application hears: error, close, a reply, or nothing. */
export function outcome({ Socket }, { vsn, frame }) {
  let transport
  class Transport {
    constructor() { this.readyState = 1; transport = this }
    send() {}
    close() {}
  }
  const options = vsn === "1.0.0" ? JSON_CODEC : {}
  const socket = new Socket("ws://none/socket", { transport: Transport, heartbeatIntervalMs: 1e6, timeout: 1e6, ...options })
  socket.connect()
  transport.onopen?.()
  const say = (join_ref, ref, topic, event, payload) => transport.onmessage({
    data: JSON.stringify(vsn === "1.0.0" ? { topic, event, payload, ref } : [join_ref, ref, topic, event, payload]),
  })
  const ok = { status: "ok", response: {} }
  // Callbacks of a socket have refs, too, since 1.4.
  const withRef = (ref, act) => { socket.ref = ref - 1; return act() }
  const other = socket.channel("rooms:other")
  withRef(1, () => other.join())
  say("1", "1", "rooms:other", "phx_reply", ok)
  withRef(2, () => other.push("e", {}))
  const channel = socket.channel(TOPIC)
  const heard = []
  withRef(3, () => channel.join())
  say("3", "3", TOPIC, "phx_reply", ok)
  channel.onError(() => heard.push("error"))
  channel.onClose(() => heard.push("close"))
  const push = withRef(4, () => channel.push("e", {}))
  for (const status of ["ok", "error"]) {
    push.receive(status, response => heard.push(`reply ${status} ${JSON.stringify(response ?? null)}`))
  }
  if (push.ref !== "4" || channel.joinRef() !== "3") throw new Error(`refs ${channel.joinRef()} and ${push.ref}`)
  try {
    transport.onmessage({ data: frame })
  } catch (error) {
    return "throws"
  }
  return heard.join(", ") || "nothing"
}
