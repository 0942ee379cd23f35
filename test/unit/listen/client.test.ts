import { describe, expect, it } from 'vitest'
import { clientBehind, createTrustedProxies, UNIX } from '../../../src/listen/client.ts'

const TRUSTED = createTrustedProxies(['10.0.0.0/8', 'fd00::/8', '192.0.2.7/32'])
const PEER = { address: '10.0.0.1', isSecure: false }

type Row = readonly [what: string, headers: Record<string, string>, address: string, isSecure?: boolean]

const ROWS: readonly Row[] = [
  ['says nothing', {}, '10.0.0.1'],
  ['names one client', { 'x-forwarded-for': '203.0.113.5' }, '203.0.113.5'],
  ['names a client that claims to be another', { 'x-forwarded-for': '8.8.8.8, 203.0.113.5' }, '203.0.113.5'],
  [
    'is the last of several trusted ones',
    { 'x-forwarded-for': '8.8.8.8,203.0.113.5, 10.1.1.1 ,192.0.2.7' },
    '203.0.113.5',
  ],
  ['names trusted ones only', { 'x-forwarded-for': '10.2.2.2, 10.1.1.1' }, '10.2.2.2'],
  ['writes ports', { 'x-forwarded-for': '203.0.113.5:4711' }, '203.0.113.5'],
  ['writes IPv6', { 'x-forwarded-for': '2001:db8::5' }, '2001:db8::5'],
  ['writes IPv6 with a port', { 'x-forwarded-for': '[2001:db8::5]:80' }, '2001:db8::5'],
  ['writes an IPv4 address as IPv6', { 'x-forwarded-for': '::ffff:203.0.113.5' }, '203.0.113.5'],
  ['writes what is no address', { 'x-forwarded-for': '203.0.113.5, nonsense' }, '10.0.0.1'],
  ['writes what is no address behind a trusted one', { 'x-forwarded-for': 'localhost, 10.1.1.1' }, '10.1.1.1'],
  ['speaks the standard', { forwarded: 'for=203.0.113.5;proto=https;by=10.0.0.1' }, '203.0.113.5', true],
  ['speaks the standard with quotes', { forwarded: 'For="[2001:db8::5]:1"; Proto="HTTPS"' }, '2001:db8::5', true],
  [
    'speaks the standard through several',
    { forwarded: 'for=8.8.8.8;proto=http, for=203.0.113.5;proto=https, for=10.9.9.9;proto=http' },
    '203.0.113.5',
    true,
  ],
  ['hides its client', { forwarded: 'for=unknown;proto=https' }, '10.0.0.1', true],
  ['hides its client by a name', { forwarded: 'for=_hidden, for=10.1.1.1' }, '10.1.1.1'],
  ['leaves a quote open', { forwarded: 'for=";, for=203.0.113.5' }, '10.0.0.1'],
  ['quotes a comma', { forwarded: 'for="a,b";proto=https, for=203.0.113.5;x="a;\\",b"' }, '203.0.113.5'],
  ['is silent about a scheme', { 'x-forwarded-for': '203.0.113.5' }, '203.0.113.5', false],
  ['says https', { 'x-forwarded-for': '203.0.113.5', 'x-forwarded-proto': 'https' }, '203.0.113.5', true],
  [
    'says https for a chain',
    { 'x-forwarded-for': '203.0.113.5, 10.1.1.1', 'x-forwarded-proto': 'https' },
    '203.0.113.5',
    true,
  ],
  [
    'says what its client claimed first',
    { 'x-forwarded-for': '203.0.113.5', 'x-forwarded-proto': 'https, http' },
    '203.0.113.5',
    false,
  ],
  [
    'says the scheme of each hop',
    { 'x-forwarded-for': '203.0.113.5, 10.1.1.1', 'x-forwarded-proto': 'https, http' },
    '203.0.113.5',
    true,
  ],
  ['says https and no address', { 'x-forwarded-proto': 'https' }, '10.0.0.1', true],
  ['says a scheme that is none', { 'x-forwarded-for': '203.0.113.5', 'x-forwarded-proto': 'gopher' }, '203.0.113.5'],
  ['passes on a foreign Forwarded', { forwarded: 'for=8.8.8.8', 'x-forwarded-for': '203.0.113.5' }, '10.0.0.1'],
  [
    'passes on a foreign scheme',
    { forwarded: 'for=203.0.113.5;proto=https', 'x-forwarded-for': '203.0.113.5', 'x-forwarded-proto': 'http' },
    '10.0.0.1',
  ],
  [
    'says the same in both ways',
    { forwarded: 'for=203.0.113.5;proto=https', 'x-forwarded-for': '203.0.113.5', 'x-forwarded-proto': 'https' },
    '203.0.113.5',
    true,
  ],
]

describe('the client behind a trusted proxy', () => {
  it.each(ROWS.map((row) => [row[0], row] as const))('that %s', (_what, [, headers, address, isSecure = false]) => {
    expect(clientBehind(PEER, headers, TRUSTED)).toEqual({ address, isSecure })
  })

  it('is as insecure as the proxy says, although the proxy itself came over TLS', () => {
    const headers = { 'x-forwarded-for': '203.0.113.5', 'x-forwarded-proto': 'http' }
    expect(clientBehind({ ...PEER, isSecure: true }, headers, TRUSTED).isSecure).toBe(false)
  })

  it('is found in a chain of any length in little time', () => {
    const headers = { 'x-forwarded-for': '10.1.1.1,'.repeat(5000), forwarded: 'for="'.repeat(3000) }
    const before = performance.now()
    expect(clientBehind(PEER, headers, TRUSTED).address).toBe('10.0.0.1')
    expect(performance.now() - before).toBeLessThan(500)
  })
})

describe('trusted proxies', () => {
  it.each([
    ['10.255.0.1', true],
    ['11.0.0.1', false],
    ['192.0.2.7', true],
    ['192.0.2.8', false],
    ['fd12::1', true],
    ['fe80::1', false],
    ['nonsense', false],
    [UNIX, false],
  ])('%s: %s', (address, expected) => {
    expect(TRUSTED.includes(address)).toBe(expected)
  })

  it('include the peer of a Unix socket when they include this machine', () => {
    expect(createTrustedProxies(['127.0.0.0/8']).includes(UNIX)).toBe(true)
  })

  it.each(['10.0.0.0', '10.0.0.0/33', '10.0.0/8', 'fd00::/129', 'unix', '', '/8'])('cannot be %j', (entry) => {
    expect(() => createTrustedProxies([entry])).toThrow('config_error')
  })
})
