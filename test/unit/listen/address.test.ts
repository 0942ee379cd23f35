import { describe, expect, it } from 'vitest'
import { addressText, parseListenAddress } from '../../../src/listen/index.ts'

describe('listen addresses', () => {
  it.each([
    ['127.0.0.1:8080', { kind: 'tcp', host: '127.0.0.1', port: 8080, isLoopback: true }],
    ['[::1]:0', { kind: 'tcp', host: '::1', port: 0, isLoopback: true }],
    [':8080', { kind: 'tcp', host: '', port: 8080, isLoopback: false }],
    ['0.0.0.0:1', { kind: 'tcp', host: '0.0.0.0', port: 1, isLoopback: false }],
    ['unix:/run/a.sock', { kind: 'unix', path: '/run/a.sock', isLoopback: true }],
  ])('reads %s', (text, address) => {
    expect(parseListenAddress(text)).toEqual(address)
  })

  it.each(['', '8080', 'localhost', 'unix:relative', ':x', ':70000', 'http://h:1'])('refuses %j', (text) => {
    expect(() => parseListenAddress(text)).toThrow('config_error')
  })

  it.each([
    [':8080', '*:8080'],
    ['127.0.0.1:1', '127.0.0.1:1'],
    ['unix:/run/a.sock', '/run/a.sock'],
  ])('says %s as %s', (text, said) => {
    expect(addressText(parseListenAddress(text))).toBe(said)
  })
})
