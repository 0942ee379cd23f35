import { canonicalRequest, EMPTY_HASH } from '../../../src/apply/sigv4.ts'
import { describe, expect, test } from 'vitest'
import {
  canonicalHeaders,
  canonicalPath,
  canonicalPathOfS3,
  canonicalQuery,
  isSigned,
} from '../../../src/apply/sigv4-canonical.ts'

describe('the canonical path', () => {
  test.each([
    ['/', '/'],
    ['/mcp', '/mcp'],
    ['/mcp/', '/mcp/'],
    ['/a.b/c~d_e-f', '/a.b/c~d_e-f'],
    ['/.well-known/x', '/.well-known/x'],
    ['/a/./b', '/a/b'],
    ['/a/../b', '/b'],
    ['/../a', '/a'],
    ['/..', '/'],
    ['//', '/'],
    ['//a///b//', '/a/b/'],
    ['/x%20y', '/x%2520y'],
    ['/a%2Fb', '/a%252Fb'],
    ['/%E1%88%B4', '/%25E1%2588%25B4'],
    ['/a:b@c;d=e', '/a%3Ab%40c%3Bd%3De'],
    ['/a+b', '/a%2Bb'],
    ['/*', '/%2A'],
    ['/\u00e1\u0088\u00b4', '/%E1%88%B4'],
    [
      '/arn:aws:x:eu-central-1:1:runtime%2Fr/invocations',
      '/arn%3Aaws%3Ax%3Aeu-central-1%3A1%3Aruntime%252Fr/invocations',
    ],
  ])('%s → %s', (path, expected) => {
    expect(canonicalPath(path)).toBe(expected)
  })
})

describe('the canonical query', () => {
  test.each([
    ['', ''],
    ['a=1', 'a=1'],
    ['a', 'a='],
    ['a=', 'a='],
    ['=1', '=1'],
    ['b=1&a=2', 'a=2&b=1'],
    ['a=2&a=1', 'a=1&a=2'],
    ['a=1&a=1', 'a=1&a=1'],
    ['a=&a', 'a=&a='],
    ['A=1&a=1', 'A=1&a=1'],
    ['a10=1&a2=1&a1=1', 'a1=1&a10=1&a2=1'],
    ['a-b=1&a=1', 'a=1&a-b=1'],
    ['&&a=1&', 'a=1'],
    ['a=b=c', 'a=b%3Dc'],
    ['a=%3d', 'a=%3D'],
    ['a=%7E&b=~', 'a=~&b=~'],
    ['%61=%62', 'a=b'],
    ['a=x+y', 'a=x%2By'],
    ['a=x%20y', 'a=x%20y'],
    ['a=%', 'a=%25'],
    ['a=%zz', 'a=%25zz'],
    ['a=%E1%88%B4', 'a=%E1%88%B4'],
    ['a=\u00e1\u0088\u00b4', 'a=%E1%88%B4'],
    ["a=/?:@!$'()*,;", 'a=%2F%3F%3A%40%21%24%27%28%29%2A%2C%3B'],
  ])('%s → %s', (query, expected) => {
    expect(canonicalQuery(query)).toBe(expected)
  })
})

describe('the canonical headers', () => {
  test('are those of the allow-list, sorted, in lower case', () => {
    const headers = [
      'X-Amz-Date',
      'd',
      'Mcp-Session-Id',
      's',
      'Host',
      'h',
      'Accept',
      'x',
      'Content-Type',
      'c',
      'Cookie',
      'y',
    ]
    expect(canonicalHeaders(headers)).toEqual({
      names: 'content-type;host;mcp-session-id;x-amz-date',
      lines: 'content-type:c\nhost:h\nmcp-session-id:s\nx-amz-date:d\n',
    })
  })

  test('values are trimmed, runs of spaces become one, repeated names are joined in the order sent', () => {
    const headers = ['mcp-param-b', '  a   b  ', 'host', 'h', 'Mcp-Param-A', 'z', 'mcp-param-a', ' y \t y\u00a0']
    expect(canonicalHeaders(headers).lines).toBe('host:h\nmcp-param-a:z,y y\u00a0\nmcp-param-b:a b\n')
  })

  test.each([
    ['host', true],
    ['content-type', true],
    ['x-amz-target', true],
    ['mcp-name', true],
    ['content-length', false],
    ['user-agent', false],
    ['accept', false],
    ['transfer-encoding', false],
    ['x-forwarded-for', false],
    ['connection', false],
    ['traceparent', false],
    ['last-event-id', false],
  ])('%s: %s', (name, signed) => {
    expect(isSigned(name)).toBe(signed)
  })
})

test.each([
  ['/bucket/key', '/bucket/key'],
  ['/bucket/a%20b', '/bucket/a%20b'],
  ['/bucket/a%2Fb%2fc', '/bucket/a%2Fb%2Fc'],
  ['/bucket//double/./dots', '/bucket//double/./dots'],
  ['/bucket/a+b=c', '/bucket/a%2Bb%3Dc'],
  ['/bucket/', '/bucket/'],
  ['/', '/'],
])('S3 signs the path %s as %s: encoded once, nothing taken away', (path, canonical) => {
  expect(canonicalPathOfS3(path)).toBe(canonical)
  const input = { method: 'GET', target: path, headers: ['host', 'b.example'], payloadHash: EMPTY_HASH }
  expect(canonicalRequest(input, 's3').text.split('\n')[1]).toBe(canonical)
  expect(canonicalRequest(input, 'aws-mcp').text.split('\n')[1]).toBe(canonicalPath(path))
})
