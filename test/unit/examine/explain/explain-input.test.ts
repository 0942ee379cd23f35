import { expect, test } from 'vitest'
import { callerOfClaims, callerOfToken } from '../../../../src/examine/explain/explain-input.ts'
import type { Io } from '../../../../src/compose/io.ts'

const given = (text: string): Io => ({
  stdout() {},
  stderr() {},
  env: {},
  stdin: () => Promise.resolve(text),
  stop: new Promise(() => {}),
  onReload() {},
})
const jwt = (payload: string, signature = 'c2ln'): string =>
  [Buffer.from('{"alg":"RS256"}').toString('base64url'), Buffer.from(payload).toString('base64url'), signature].join(
    '.',
  )

test('claims are read as the proxy reads them: a name that is there twice is refused, with the reason', async () => {
  const twice = '{"sub":"alice","groups":["dev"],"groups":["admins"]}'
  await expect(callerOfClaims('-', given(twice))).rejects.toThrow(/is not a JSON object that the proxy accepts: /)
  await expect(callerOfToken('-', given(jwt(twice)))).rejects.toThrow(/the proxy rejects/)
})

test('a claim called constructor is just a claim, and other claims have no prototype', async () => {
  const { claims } = await callerOfClaims('-', given('{"constructor":"x"}'))
  expect([claims['constructor'], claims['toString']]).toEqual(['x', undefined])
})

test('a token of another shape is opaque, as it is to the proxy', async () => {
  expect((await callerOfToken('-', given('abc.def'))).format).toBe('opaque')
  expect((await callerOfToken('-', given(jwt('[1]')))).format).toBe('opaque')
  expect(await callerOfToken('-', given(jwt('{"sub":"alice","iss":"https://a"}')))).toMatchObject({
    format: 'jwt',
    subject: 'alice',
    issuer: 'https://a',
  })
})
