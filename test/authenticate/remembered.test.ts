import { describe, expect, it } from 'vitest'
import { createRemembered } from '../../src/authenticate/remembered.ts'
import { type AuthenticatedCaller, Secret } from '../../src/core/index.ts'

const END = 'the-same-end-of-24-chars'
const callerOf = (token: string): AuthenticatedCaller => ({
  kind: 'authenticated',
  provider: 'p',
  issuer: 'https://issuer.example.com',
  subject: token,
  identity: `sub:${token}`,
  claims: {},
  expiresAtMs: undefined,
  token: new Secret(token),
  tokenDigest: 'digest',
  format: 'jwt',
})

function world(seed = 0x5eed) {
  const accepted = new Map<string, AuthenticatedCaller>()
  let asked = 0
  const remembered = createRemembered((key) => {
    asked += 1
    return accepted.get(key)
  }, seed)
  const learn = (token: string, key = `key of ${token}`): AuthenticatedCaller => {
    const caller = callerOf(token)
    accepted.set(key, caller)
    remembered.note([`Bearer ${token}`], key)
    return caller
  }
  return { accepted, remembered, learn, asked: () => asked }
}

describe('a remembered token', () => {
  it('leads to the very caller that its digest leads to, as long as that one is known', () => {
    const { accepted, remembered, learn } = world()
    const caller = learn('aaaa.bbbb.cccc')
    expect(remembered.find(['Bearer aaaa.bbbb.cccc'])).toBe(caller)
    accepted.clear()
    expect(remembered.find(['Bearer aaaa.bbbb.cccc'])).toBeUndefined()
  })

  it.each([
    ['with another beginning', `1${END}`, `2${END}`],
    ['with more before it', END, `0${END}`],
    ['of another length', `000${END}`, `00${END}`],
  ])('is not mistaken for one that ends alike %s', (_what, known, other) => {
    const { remembered, learn, asked } = world()
    learn(known)
    expect(remembered.find([`Bearer ${other}`])).toBeUndefined()
    // The same place was looked at: it was the comparison that told them apart.
    expect(asked()).toBe(1)
  })

  it('gives its place to the next that ends alike, and both go on being known by their digests', () => {
    const { remembered, learn } = world()
    learn(`1${END}`)
    const second = learn(`2${END}`)
    expect(remembered.find([`Bearer 2${END}`])).toBe(second)
    expect(remembered.find([`Bearer 1${END}`])).toBeUndefined()
  })

  it.each([[[]], [['Bearer']], [['']], [['bearer tok']], [['Bearer  tok']], [['Bearer tok', 'Bearer tok']]])(
    'is not found by %j',
    (authorization) => {
      const { remembered, learn } = world()
      learn('tok')
      expect(remembered.find(authorization)).toBeUndefined()
      expect(remembered.find(['Bearer tok'])).toBeDefined()
    },
  )

  it('is forgotten when everything is', () => {
    const { remembered, learn } = world()
    learn('tok')
    remembered.clear()
    expect(remembered.find(['Bearer tok'])).toBeUndefined()
  })
})

describe('a secret compared with a text', () => {
  const long = 'x'.repeat(40_000)
  it.each([
    ['token', 'token', true],
    ['token', 'tokem', false],
    ['token', 'toke', false],
    ['', '', true],
    ['ü', 'ü', true],
    ['ü', 'u', false],
    ['ā', '\u0001', false],
    [long, long, true],
    [long, `${long.slice(1)}y`, false],
  ])('%#', (secret, text, isSame) => {
    expect(new Secret(secret).isText(text)).toBe(isSame)
  })

  it('is never text when it is bytes', () => {
    expect(new Secret(Buffer.from('token')).isText('token')).toBe(false)
  })
})
