import { describe, expect, test } from 'vitest'
import { parseObjects } from '../../../../src/load/index.ts'

const problemsOf = (spec: object, kind = 'MCPRemoteProxy'): string[] =>
  parseObjects([
    {
      apiVersion: 'extauth.dev/v1alpha1',
      kind,
      metadata: { name: 'p' },
      spec: { remoteUrl: 'https://a.example.com', ...spec },
    },
  ]).problems.map(({ path, message }) => `${path}: ${message}`)
const egress = (...to: object[]) => problemsOf({ egress: [{ to }] })
const block = (cidr: string, except?: string[]) =>
  egress({ ipBlock: except === undefined ? { cidr } : { cidr, except } })
const ALL = ['169.254.0.0/16', '100.100.100.200/32', '168.63.129.16/32']

describe('a target', () => {
  test.each([
    'http://169.254.169.254/latest/meta-data',
    'http://2852039166/',
    'http://0xa9fea9fe/',
    'http://[fd00:ec2::254]/',
    'http://[fe80::1]/',
    'http://[::ffff:169.254.169.254]/',
    'http://100.100.100.200/',
    'http://metadata.google.internal/computeMetadata/v1/',
    'http://metadata.google.internal./',
    'http://METADATA.goog/',
  ])('is no metadata service: %s', (remoteUrl) => {
    for (const kind of ['MCPRemoteProxy', 'MCPServerEntry'])
      expect(problemsOf({ remoteUrl }, kind).join()).toContain('spec.remoteUrl: is a link-local address or a metadata')
    expect(problemsOf({ remoteUrl: undefined, remoteURL: remoteUrl }).join()).toContain(
      'spec.remoteURL: is a link-local',
    )
  })

  test.each(['http://10.0.0.1/', 'http://127.0.0.1:3000/', 'https://metadata.example.com/'])(
    'may be %s',
    (remoteUrl) => {
      expect(problemsOf({ remoteUrl })).toEqual([])
    },
  )
})

describe('an egress rule', () => {
  test.each([
    ['is one', '169.254.169.254/32'],
    ['holds one', '169.254.0.0/16'],
    ['holds everything', '0.0.0.0/0'],
    ['lies in a link-local network', '169.254.3.0/24'],
    ['holds one of another cloud', '100.64.0.0/10'],
    ['holds one by IPv6', '::/0'],
    ['is link-local by IPv6', 'fe80::1/128'],
    ['holds one of IPv6', 'fc00::/7'],
    ['holds one as NAT64 writes it', '64:ff9b::/96'],
  ])('with a peer that %s is refused', (_what, cidr) => {
    expect(block(cidr).join()).toContain('spec.egress[0].to[0].ipBlock.cidr: reaches')
  })

  test.each([
    '0169.254.169.254/32',
    '169.254.169.254',
    '::ffff:169.254.169.254/128',
    '',
    'x',
    '10.0.0.0/33',
    '10.0.0.0/08',
  ])('with a peer that not every reader takes for the same network is refused: "%s"', (cidr) => {
    expect(block(cidr).join()).toContain('expected a network such as')
  })

  test('for all peers, by omitting peers, is rejected', () => {
    expect(problemsOf({ egress: [{ ports: [{ port: 80 }] }] }).join()).toContain('spec.egress[0].to: missing')
    expect(egress().join()).toContain('spec.egress[0].to: missing')
  })

  test('that leaves them out is taken, if it leaves out all of each', () => {
    expect(block('0.0.0.0/0', ALL)).toEqual([])
    expect(block('0.0.0.0/0', ['169.254.169.254/32', ...ALL.slice(1)]).join()).toContain('reaches 169.254.0.0/16')
    expect(block('0.0.0.0/0', ALL.slice(1)).join()).toContain('reaches 169.254.0.0/16')
    expect(block('0.0.0.0/0', ['0169.254.0.0/16', ...ALL.slice(1)]).join()).toContain('expected a network')
  })

  test('to pods, or to a network of them, is taken', () => {
    expect(egress({ podSelector: {} }, { ipBlock: { cidr: '10.0.0.0/8' } })).toEqual([])
  })
})
