import { describe, expect, it } from 'vitest'
import { headerSecretProblem, secretFormatWarning } from '../../../src/core/index.ts'

describe('a secret that is to be a header', () => {
  it.each([
    ['a byte order mark', '\uFEFFtoken', 'it begins with a byte order mark'],
    ['a blank line at its end', 'token\n', 'it ends with a blank line'],
    ['a second line', 'token\nother', 'it has more than one line'],
    ['a control character', 'to\u0007ken', 'it has control characters'],
    ['more than 8 KiB', 'x'.repeat(8193), 'it is longer than 8 KiB, too long for a header'],
  ])('cannot have %s, whatever it is for', (_name, text, problem) => {
    expect(headerSecretProblem(text, 'header value')).toBe(problem)
    expect(headerSecretProblem(text, 'bearer token')).toBe(problem)
  })

  it.each([
    ['quotes around it', '"token"', 'it is in quotes'],
    ['single quotes around it', "'token'", 'it is in quotes'],
    ['its scheme before it', 'Bearer token', 'it begins with "Bearer ", which the proxy adds'],
    ['its scheme in any case', 'bearer  token', 'it begins with "Bearer ", which the proxy adds'],
  ])('cannot have %s as a bearer token, only as a value', (_name, text, problem) => {
    expect(headerSecretProblem(text, 'bearer token')).toBe(problem)
    expect(headerSecretProblem(text, 'header value')).toBeUndefined()
  })

  it.each(['token', '1|abc', 'Bearertoken', 'a"b', 'ключ'])('may be %s', (text) => {
    expect(headerSecretProblem(text, 'bearer token')).toBeUndefined()
  })
})

describe('a secret that is shown to a service', () => {
  it.each([
    ['\uFEFFsecret', 'it begins with a byte order mark'],
    ['secret\n', 'it ends with a blank line'],
    ['one\ntwo', 'it has more than one line'],
    ['sec\0ret', 'it has control characters'],
    ['"secret"', 'it is in quotes'],
  ])('is invalid as %j', (text, oddity) => {
    expect(secretFormatWarning(text)).toBe(oddity)
  })

  it.each([
    'secret',
    ' secret ',
    'sécret',
    '-----BEGIN PRIVATE KEY-----\nMIG\n-----END PRIVATE KEY-----\n\n',
    '{\n"kty":"EC"}\n',
  ])('may be %j', (text) => {
    expect(secretFormatWarning(text)).toBeUndefined()
  })
})
