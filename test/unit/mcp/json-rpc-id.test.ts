import { expect, test } from 'vitest'
import { jsonRpcIdOf } from '../../../src/mcp/index.ts'

const idOf = (text: string) => jsonRpcIdOf(Buffer.from(text))

test.each([
  ['a number', '{"jsonrpc":"2.0","id":1,"method":"x"}', 1],
  ['zero', '{"jsonrpc":"2.0","id":0}', 0],
  ['a negative number', '{"jsonrpc":"2.0","id":-7}', -7],
  ['a fraction', '{"jsonrpc":"2.0","id":1.5}', 1.5],
  ['a text', '{"jsonrpc":"2.0","id":"a-1","method":"x"}', 'a-1'],
  ['an empty text', '{"jsonrpc":"2.0","id":""}', ''],
  ['behind the parameters, as SDKs write it', '{"method":"x","params":{"id":7},"jsonrpc":"2.0","id":2}', 2],
  ['with markup in it', '{"jsonrpc":"2.0","id":"</script>"}', '</script>'],
])('%s', (_, text, id) => expect(idOf(text)).toBe(id))

test.each([
  ['nothing', ''],
  ['no JSON', '{"jsonrpc":"2.0","id":1'],
  ['a notification', '{"jsonrpc":"2.0","method":"x"}'],
  ['null', '{"jsonrpc":"2.0","id":null}'],
  ['an object', '{"jsonrpc":"2.0","id":{}}'],
  ['a boolean', '{"jsonrpc":"2.0","id":true}'],
  ['a batch', '[{"jsonrpc":"2.0","id":1}]'],
  ['another protocol', '{"id":1}'],
  ['another version', '{"jsonrpc":"1.0","id":1}'],
  ['a number that was rounded', '{"jsonrpc":"2.0","id":9007199254740993}'],
  ['a number beyond all', '{"jsonrpc":"2.0","id":1e999}'],
  ['a text that is too long', `{"jsonrpc":"2.0","id":"${'x'.repeat(257)}"}`],
  ['an inherited id', '{"jsonrpc":"2.0","__proto__":{"id":1}}'],
  ['a body that is too large', `{"jsonrpc":"2.0","id":1,"x":"${'x'.repeat(1024 * 1024)}"}`],
])('none in %s', (_, text) => expect(idOf(text)).toBeUndefined())
