import type { Mutation } from './mutation.ts'

/** What keeps one connection from costing others, and who says where a request came from. */
export const LISTEN: readonly Mutation[] = [
  {
    rule: 'requests of a connection are answered one after the other',
    file: 'src/listen/connection.ts',
    find: 'if (this.#waiting.length === 0 && !this.isBusy) return this.#start(request, response, kind)',
    replace: 'return this.#start(request, response, kind)',
    tests: ['test/listen/pipelining.test.ts'],
  },
  {
    rule: 'a connection with too much unanswered is read no further',
    file: 'src/listen/connection.ts',
    find: 'if (unanswered >= MAX_UNANSWERED) this.#pause()',
    replace: '',
    tests: ['test/listen/pipelining.test.ts'],
  },
  {
    rule: 'nothing is read behind an upgrade that is not served',
    file: 'src/listen/connection.ts',
    find: 'this.#last ??= request',
    replace: '',
    tests: ['test/listen/upgrades.test.ts', 'test/proxy/ambiguous.test.ts', 'test/proxy/hostile-clients.test.ts'],
  },
  {
    rule: 'an answer that nobody reads ends the connection',
    file: 'src/listen/connection.ts',
    find: "if (this.socket.writableLength > 0) return 'unread_answer'",
    replace: '',
    tests: ['test/listen/stuck.test.ts'],
  },
  {
    rule: 'a body that nobody wants any more has an end',
    file: 'src/listen/connection.ts',
    find: "if (this.#hasUnreadBody && !this.isBusy) return 'unread_body'",
    replace: '',
    tests: ['test/listen/stuck.test.ts'],
  },
  {
    rule: 'a torn answer without framing ends with a reset',
    file: 'src/listen/connection.ts',
    find: 'if (isTorn && this.#rules.canReset) socket.resetAndDestroy()',
    replace: 'if (isTorn && false) socket.resetAndDestroy()',
    tests: ['test/proxy/lifecycle.test.ts'],
  },
  {
    rule: 'only a listed proxy says who the client is',
    file: 'src/listen/peer.ts',
    find: 'options.trustedProxies?.includes(address) === true ? options.trustedProxies : undefined',
    replace: 'options.trustedProxies',
    tests: ['test/e2e/listener-options.test.ts'],
  },
  {
    rule: 'the first address that is not trusted is the client',
    file: 'src/listen/client.ts',
    find: 'if (!trusted.includes(address)) break',
    replace: '',
    tests: ['test/listen/client.test.ts'],
  },
  {
    rule: 'two headers that disagree about the client are not believed',
    file: 'src/listen/client.ts',
    find: 'said.address === other.address && said.isSecure === other.isSecure ? said : peer',
    replace: 'said',
    tests: ['test/listen/client.test.ts'],
  },
  {
    rule: 'memory for bodies that are kept has a limit',
    file: 'src/proxy/body-budget.ts',
    find: 'if (!this.hasRoom(holder, bytes)) return false',
    replace: '',
    tests: ['test/proxy/body-memory.test.ts'],
  },
  {
    rule: 'a kept body goes out as the backend reads, and is held once',
    file: 'src/forward/payload.ts',
    find: 'body.bytes.length <= PIECE_BYTES ? body.bytes :',
    replace: 'body.bytes.length > 0 ? body.bytes :',
    tests: ['test/e2e/kept-bodies.test.ts'],
  },
  {
    rule: 'two Host lines are refused everywhere',
    file: 'src/http/host-header.ts',
    find: 'return hosts > 1',
    replace: 'return hosts > 2',
    tests: ['test/proxy/ambiguous.test.ts', 'test/ops/open-endpoints.test.ts', 'test/registry/http.test.ts'],
  },
]
