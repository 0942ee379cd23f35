import { describe, expect, test } from 'vitest'
import { MessageFilter } from '../../../src/authorize/message-filter.ts'

const filter = () => new MessageFilter({ keeps: () => true, keepsUpdate: () => true })
const fields = (count: number, length = 1) =>
  Array.from({ length: count }, (_, at) => `"${String(at).padStart(length, 'x')}":0`).join(',')
const inResult = (inner: string) => `{"jsonrpc":"2.0","id":1,"result":{${inner}}}`

describe('field names that are compared', () => {
  test.each([
    ['a thousand', inResult(fields(1000))],
    ['any number in a part that does not matter', inResult(`"_meta":{${fields(5000)}}`)],
  ])('pass: %s', (_what, text) => {
    const message = filter()
    message.push(text)
    expect(message.end().kind).toBe('response')
    expect(message.take()).toBe(text)
  })

  test.each([
    ['too many in the result', inResult(fields(1025))],
    ['too many in the message', `{"jsonrpc":"2.0","id":1,"result":{},${fields(1025)}}`],
    ['too long together', inResult(fields(100, 1000))],
  ])('are refused: %s', (_what, text) => {
    expect(() => filter().push(text)).toThrow(
      expect.objectContaining({ code: 'backend_error', detail: 'filtered answer: too many fields' }) as Error,
    )
  })
})
