import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { Secret } from '../../../src/core/index.ts'

const VALUE = 'the-plaintext'

describe('a secret', () => {
  const secret = new Secret(VALUE)

  it.each([
    ['a template', `it is ${String(secret)}`],
    ['String()', String(secret)],
    ['concatenation', ['it is', secret].join(' ')],
    ['JSON', JSON.stringify({ secret, list: [secret] })],
    ['inspect', inspect({ secret, nested: { list: [secret] } }, { depth: 9, showHidden: true, getters: true })],
    ['its keys', JSON.stringify([Object.keys(secret), Object.entries(secret), Object.getOwnPropertyNames(secret)])],
    ['an error around it', inspect(new Error('x', { cause: secret }))],
  ])('is not seen in %s', (_name, text) => {
    expect(text).not.toContain(VALUE)
  })

  it('is given by reveal() alone', () => {
    expect(secret.reveal()).toBe(VALUE)
    expect(secret.length).toBe(VALUE.length)
  })

  it('compares by content, whatever the lengths', () => {
    expect(secret.equals(new Secret(VALUE))).toBe(true)
    expect(secret.equals(VALUE)).toBe(true)
    for (const other of ['', 'the-plaintexT', `${VALUE} `, VALUE.slice(1)]) expect(secret.equals(other)).toBe(false)
  })

  it('has a cache key, computed once, that does not reveal the plaintext', () => {
    const key = secret.key()
    expect(key.export().toString('utf8')).toBe(VALUE)
    expect(secret.key()).toBe(key)
    expect(new Secret(Buffer.from([0, 255])).key().export()).toEqual(Buffer.from([0, 255]))
    expect(inspect({ secret, key }, { depth: 9, showHidden: true })).not.toContain(VALUE)
  })

  it('has a digest that differs between values', () => {
    expect(secret.digest()).toBe(new Secret(VALUE).digest())
    expect(secret.digest()).not.toBe(new Secret(`${VALUE}x`).digest())
    expect(secret.digest()).not.toContain(VALUE)
  })
})
