import { describe, expect, it } from 'vitest'
import { isLoopbackHost } from '../../../src/core/index.ts'
import { parseListenAddress } from '../../../src/listen/index.ts'
import { isLoopbackBind } from '../../../src/fields/plain-http.ts'

const HOSTS: readonly (readonly [string, boolean])[] = [
  ['localhost', true],
  ['LOCALHOST', true],
  ['localhost.', true],
  ['a.localhost', true],
  ['127.0.0.1', true],
  ['127.8.9.1', true],
  ['[::1]', true],
  ['[0:0:0:0:0:0:0:1]', true],
  ['[::ffff:127.0.0.1]', true],
  ['0.0.0.0', false],
  ['[::]', false],
  ['10.0.0.1', false],
  ['128.0.0.1', false],
  ['1.127.0.0', false],
  ['[::2]', false],
  ['[::ffff:10.0.0.1]', false],
  ['localhost.example.com', false],
  ['notlocalhost', false],
  ['127.0.0.1.nip.io', false],
]

describe('what can only be this machine', () => {
  it.each(HOSTS)('the host %s: %s', (host, expected) => {
    expect(isLoopbackHost(host)).toBe(expected)
  })

  it.each([...HOSTS.map(([host, expected]) => [`${host}:80`, expected] as const), [':80', false] as const])(
    'the bind %s: %s, to configuration and listener alike',
    (address, expected) => {
      expect([isLoopbackBind(address), parseListenAddress(address).isLoopback]).toEqual([expected, expected])
    },
  )
})
