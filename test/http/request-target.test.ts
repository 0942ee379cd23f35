import { describe, expect, it } from 'vitest'
import { parseHost, isLoopbackHost, parseListenAddress, readRequestTarget } from '../../src/http/index.ts'

describe('readRequestTarget', () => {
  it.each([
    ['/mcp', 'h', '/mcp', ''],
    ['/mcp?', 'h', '/mcp', ''],
    ['/mcp?a=b?c', 'h', '/mcp', 'a=b?c'],
    ['http://h/mcp?a', 'h', '/mcp', 'a'],
    ['http://H:80/mcp', 'h', '/mcp', ''],
    ['https://h:443', 'h', '/', ''],
    ['http://h?x=1', 'h', '/', 'x=1'],
    ['//h/mcp', 'h', '//h/mcp', ''],
  ])('reads %s', (target, host, path, query) => {
    expect(readRequestTarget(target, host)).toEqual({ path, query })
  })

  it.each([
    ['http://other/mcp', 'h'],
    ['http://h:81/mcp', 'h'],
    ['http://user@h/mcp', 'h'],
    ['ftp://h/mcp', 'h'],
    ['*', 'h'],
    ['h:443', 'h'],
    ['', 'h'],
    ['http://h/../x', 'h'],
    ['http://h\\x', 'h'],
    ['/a?b#c', 'h'],
    ['http://h#x', 'h'],
  ])('refuses %s', (target, host) => {
    expect(() => readRequestTarget(target, host)).toThrow('bad_request')
  })
})

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

  it.each([
    ['127.0.0.1:8080', { kind: 'tcp', host: '127.0.0.1', port: 8080, isLoopback: true }],
    ['[::1]:0', { kind: 'tcp', host: '::1', port: 0, isLoopback: true }],
    [':8080', { kind: 'tcp', host: '', port: 8080, isLoopback: false }],
    ['0.0.0.0:1', { kind: 'tcp', host: '0.0.0.0', port: 1, isLoopback: false }],
    ['unix:/run/a.sock', { kind: 'unix', path: '/run/a.sock', isLoopback: true }],
  ])('reads the listen address %s', (text, address) => {
    expect(parseListenAddress(text)).toEqual(address)
  })

  it.each(['', '8080', 'localhost', 'unix:relative', ':x', ':70000', 'http://h:1'])(
    'refuses the listen address %j',
    (text) => {
      expect(() => parseListenAddress(text)).toThrow('config_error')
    },
  )
})
