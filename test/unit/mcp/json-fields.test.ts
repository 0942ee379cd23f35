import { describe, expect, it } from 'vitest'
import { removeParams, setField } from '../../../src/mcp/index.ts'

describe('removeParams', () => {
  const names = new Set(['requestState', 'inputResponses'])
  it.each([
    ['{"params":{"requestState":"x","a":1}}', '{"params":{"a":1}}'],
    ['{"params":{"a":1,"requestState":"x"}}', '{"params":{"a":1}}'],
    ['{ "params" : { "a" : 1 , "inputResponses" : {"b":[1,{"c":"}"}]} , "d":2 } }', '{ "params" : {"a" : 1,"d":2} }'],
    ['{"params":{"requestState":"x"},"id":1}', '{"params":{},"id":1}'],
    ['{"params":{"a":12345678901234567890.10,"requestState":""}}', '{"params":{"a":12345678901234567890.10}}'],
    ['{"params":{"a":"\\"requestState\\":","requestState":"x"}}', '{"params":{"a":"\\"requestState\\":"}}'],
    ['{"params":{"a":{"requestState":"kept"},"\\u0072equestState":"x"}}', '{"params":{"a":{"requestState":"kept"}}}'],
    [
      '{"params":{"requestState":"x"},"params":{"requestState":"y","a":1}}',
      '{"params":{"requestState":"x"},"params":{"a":1}}',
    ],
    ['{"requestState":"outside"}', '{"requestState":"outside"}'],
    ['[1]', '[1]'],
    ['{"params":[1]}', '{"params":[1]}'],
  ])('%s', (json, expected) => {
    expect(removeParams(Buffer.from(json), names).toString()).toBe(expected)
  })
})

describe('setField', () => {
  const path = ['params', '_meta', 'a/b']
  it.each([
    ['{}', '{"params":{"_meta":{"a/b":1}}}'],
    ['{"id":1}', '{"params":{"_meta":{"a/b":1}},"id":1}'],
    ['{"params":{"n":12345678901234567890.10}}', '{"params":{"_meta":{"a/b":1},"n":12345678901234567890.10}}'],
    ['{"params": { "_meta" : {"a/b" : {"x":[1,"}"]} , "c":2} } }', '{"params": { "_meta" : {"a/b" : 1 , "c":2} } }'],
    ['{"params":{"_meta":{"a\\/b":0}}}', '{"params":{"_meta":{"a\\/b":1}}}'],
    ['{"params":{"_meta":7}}', '{"params":{"_meta":{"a/b":1}}}'],
    ['{"params":1,"params":{"_meta":{}}}', '{"params":1,"params":{"_meta":{"a/b":1}}}'],
  ])('%s', (json, expected) => {
    expect(setField(Buffer.from(json), path, 1).toString()).toBe(expected)
  })
})
