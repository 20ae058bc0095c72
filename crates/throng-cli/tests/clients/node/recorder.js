// A server that records what arrives, byte for byte and in order: requests with their heads and
// bodies, upgrades, and messages, which it sends back.

import { createHash } from "node:crypto";
import { createServer } from "node:net";

export class Recorder {
  #arrived = [];
  #sockets = new Set();
  #server = createServer((socket) => new Connection(socket, this));

  /** Listens on a free port, and returns it. */
  async listen() {
    await new Promise((done) => this.#server.listen(0, "127.0.0.1", done));
    return this.#server.address().port;
  }

  close() {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Returns what has arrived since the last call. */
  take() {
    const arrived = this.#arrived;
    this.#arrived = [];
    return arrived;
  }

  record(arrival) {
    this.#arrived.push(arrival);
  }

  keep(socket) {
    this.#sockets.add(socket);
  }
}

class Connection {
  #bytes = Buffer.alloc(0);
  #isUpgraded = false;

  constructor(socket, recorder) {
    this.socket = socket;
    this.recorder = recorder;
    recorder.keep(socket);
    socket.on("error", () => {});
    socket.on("data", (bytes) => {
      this.#bytes = Buffer.concat([this.#bytes, bytes]);
      while (this.#isUpgraded ? this.#message() : this.#request());
    });
  }

  /** Takes a request from the bytes that have arrived, if a whole one is there. */
  #request() {
    const end = this.#bytes.indexOf("\r\n\r\n");
    if (end < 0) return false;
    const [line, ...fields] = this.#bytes.toString("latin1", 0, end).split("\r\n");
    const headers = fields.map((field) => {
      const colon = field.indexOf(":");
      return [field.slice(0, colon).toLowerCase(), field.slice(colon + 1).trim()];
    });
    const header = (name) => headers.find(([known]) => known === name)?.[1];
    const begin = end + 4;
    const length = Number(header("content-length") ?? 0);
    if (this.#bytes.length < begin + length) return false;
    const body = this.#bytes.toString("latin1", begin, begin + length);
    this.#bytes = this.#bytes.subarray(begin + length);
    this.recorder.record({ request: line, headers, body });
    const key = header("sec-websocket-key");
    this.#isUpgraded = key !== undefined;
    this.socket.write(key ? upgrade(key, header("sec-websocket-protocol")) : answer(line));
    return true;
  }

  /** Takes a message from the bytes that have arrived, if a whole one is there. */
  #message() {
    const bytes = this.#bytes;
    if (bytes.length < 2) return false;
    const opcode = bytes[0] & 15;
    let length = bytes[1] & 127;
    let at = 2;
    if (length === 126) {
      if (bytes.length < 4) return false;
      [length, at] = [bytes.readUInt16BE(2), 4];
    }
    const key = bytes.subarray(at, at + 4);
    at += 4;
    if (bytes.length < at + length) return false;
    const payload = bytes.subarray(at, at + length).map((byte, index) => byte ^ key[index % 4]);
    this.#bytes = bytes.subarray(at + length);
    const name = { 1: "text", 2: "binary", 8: "close", 9: "ping", 10: "pong" }[opcode];
    // Tools close with different codes.
    this.recorder.record({ [name]: name === "close" ? "" : payload.toString("latin1") });
    if (opcode === 8) this.socket.end(frame(opcode, payload));
    else if (opcode < 8) this.socket.write(frame(opcode, payload));
    return true;
  }
}

function frame(opcode, payload) {
  const { length } = payload;
  const size = length < 126 ? [length] : [126, length >> 8, length & 255];
  return Buffer.concat([Buffer.from([0x80 | opcode, ...size]), payload]);
}

function upgrade(key, protocols) {
  const accept = createHash("sha1").update(key + GUID).digest("base64");
  const chosen = protocols?.split(",")[0].trim();
  const protocol = chosen ? `sec-websocket-protocol: ${chosen}\r\n` : "";
  return `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n${
    protocol}sec-websocket-accept: ${accept}\r\n\r\n`;
}

/** Returns an answer with values that a client may keep. */
function answer(line) {
  const body = JSON.stringify({ id: 7, next: "/items?page=2&q=a%20b", word: "x/y" });
  const head = `HTTP/1.1 200 OK\r\nx-id: Abc9\r\ncontent-type: application/json\r\n`;
  return `${head}content-length: ${body.length}\r\n\r\n${line.startsWith("HEAD") ? "" : body}`;
}

const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
