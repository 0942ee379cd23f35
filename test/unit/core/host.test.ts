import { describe, expect, it } from 'vitest'
import { isLoopbackHost, parseHost } from '../../../src/core/index.ts'

describe('hosts', () => {
  it.each([
    ['localhost', 'localhost', undefined],
    ['Localhost:8080', 'localhost', 8080],
    ['[::1]:1', '::1', 1],
    ['10.0.0.1', '10.0.0.1', undefined],
  ])('reads %s', (text, host, port) => {
    expect(parseHost(text)).toEqual({ host, port })
  })

  it.each(['', 'a b', 'user@h', 'h:', 'h:70000', '::1', 'h/x', 'h,h'])('does not read %j', (text) => {
    expect(parseHost(text)).toBeUndefined()
  })

  it.each([
    'localhost',
    'LOCALHOST',
    'a.localhost',
    'localhost.',
    '127.0.0.1',
    '127.9.9.9',
    '::1',
    '[::1]',
    '::ffff:127.0.0.1',
  ])('knows %s as loopback', (host) => {
    expect(isLoopbackHost(host)).toBe(true)
  })

  it.each(['', '0.0.0.0', 'localhost.evil.example', '127.0.0.1.nip.io', '128.0.0.1', '::', 'notlocalhost'])(
    'knows %j as not loopback',
    (host) => {
      expect(isLoopbackHost(host)).toBe(false)
    },
  )
})
