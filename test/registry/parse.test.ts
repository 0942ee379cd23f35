import { describe, expect, it } from 'vitest'
import { parseDocument, validateItems } from '../../src/registry/parse.ts'
import { compareVersions } from '../../src/registry/version-order.ts'
import { entry, snapshotOf, T0 } from './setup.ts'

const server = { name: 'com.example/a', version: '1.0.0', description: 'Does things' }
const bytes = (value: unknown) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value))
const parsed = (value: unknown) => parseDocument(bytes(value))

describe('a registry document', () => {
  it.each([
    ['one server.json', server, 1],
    ['an array of them', [server, { ...server, version: '2.0.0' }], 2],
    ['the answer of the API', { servers: [{ server, _meta: {} }], metadata: { count: 1 } }, 1],
    ['an empty array', [], 0],
    ['an API answer without entries', { servers: [] }, 0],
  ])('may be %s', async (_, value, count) => {
    const { items } = parsed(value)
    expect(await validateItems(items, 'x', T0)).toHaveLength(count)
  })

  it('says where its next page is', () => {
    expect(parsed({ servers: [], metadata: { nextCursor: 'abc' } }).nextCursor).toBe('abc')
    expect(parsed({ servers: [], metadata: { nextCursor: '' } }).nextCursor).toBeUndefined()
    expect(parsed({ servers: [] }).nextCursor).toBeUndefined()
  })

  it.each([
    ['empty', '', 'not_json'],
    ['cut off', '{"servers": [', 'not_json'],
    ['no UTF-8', Buffer.from([0x22, 0xff, 0x22]), 'not_json'],
    ['HTML', '<html></html>', 'not_json'],
    ['a number', '1', 'invalid'],
    ['null', 'null', 'invalid'],
    ['a list that is none', '{"servers": {}}', 'invalid'],
  ])('is refused when it is %s', (_, text, problem) => {
    expect(() => parseDocument(Buffer.from(text))).toThrowError(expect.objectContaining({ problem }) as Error)
  })
})

describe('an entry', () => {
  const judge = (item: unknown) => validateItems([item], 'file.json', T0)

  it.each([
    ['unknown members', { ...server, extra: { deep: [1] } }],
    ['a version that is not semantic', { ...server, version: '2026-01-31-nightly' }],
    [
      'remotes with variables',
      { ...server, remotes: [{ type: 'sse', url: 'https://{x}.example/mcp', variables: { x: {} } }] },
    ],
    ['a package', { ...server, packages: [{ registryType: 'oci', identifier: 'x/y', transport: { type: 'stdio' } }] }],
    ['an icon', { ...server, icons: [{ src: 'https://example.com/i.png', sizes: ['48x48', 'any'], theme: 'dark' }] }],
  ])('may have %s, and is served as it was written', async (_, item) => {
    const [listed] = await judge(item)
    expect(listed?.response.server).toEqual(item)
  })

  it.each([
    ['no name', { ...server, name: undefined }, 'name'],
    ['a name without a slash', { ...server, name: 'example' }, 'name'],
    ['a name with two slashes', { ...server, name: 'com.example/a/b' }, 'name'],
    ['a name with a space', { ...server, name: 'com.example/a b' }, 'name'],
    ['a name that is too long', { ...server, name: `com.example/${'a'.repeat(200)}` }, 'name'],
    ['no description', { ...server, description: undefined }, 'description'],
    ['an endless description', { ...server, description: 'x'.repeat(101) }, 'description'],
    ['no version', { ...server, version: '' }, 'version'],
    ['the version latest', { ...server, version: 'latest' }, 'version'],
    ['a version range', { ...server, version: '^1.2.3' }, 'version'],
    ['a wildcard version', { ...server, version: '1.x' }, 'version'],
    ['a website that is a script', { ...server, websiteUrl: 'javascript:alert(1)' }, 'websiteUrl'],
    ['a remote over stdio', { ...server, remotes: [{ type: 'stdio' }] }, 'remotes.0'],
    ['a remote without URL', { ...server, remotes: [{ type: 'sse' }] }, 'remotes.0.url'],
    [
      'a package without transport',
      { ...server, packages: [{ registryType: 'npm', identifier: 'x' }] },
      'packages.0.transport',
    ],
    [
      'a package version latest',
      {
        ...server,
        packages: [{ registryType: 'npm', identifier: 'x', version: 'latest', transport: { type: 'stdio' } }],
      },
      'packages.0.version',
    ],
    [
      'a positional argument without value',
      {
        ...server,
        packages: [
          {
            registryType: 'npm',
            identifier: 'x',
            transport: { type: 'stdio' },
            packageArguments: [{ type: 'positional' }],
          },
        ],
      },
      'packages.0.packageArguments.0',
    ],
    [
      'a bad hash',
      {
        ...server,
        packages: [{ registryType: 'mcpb', identifier: 'x', fileSha256: 'abc', transport: { type: 'stdio' } }],
      },
      'packages.0.fileSha256',
    ],
    [
      'a status that is none',
      entry('com.example/a', '1.0.0', { status: 'retired' }),
      '_meta.io.modelcontextprotocol.registry/official.status',
    ],
    [
      'a date that is none',
      entry('com.example/a', '1.0.0', { updatedAt: 'yesterday' }),
      '_meta.io.modelcontextprotocol.registry/official.updatedAt',
    ],
    ['nothing', null, ''],
    ['text', 'com.example/a', ''],
  ])('is refused with its place when it has %s', async (_, item, path) => {
    await expect(judge(item)).rejects.toMatchObject({
      problem: 'invalid',
      detail: expect.stringContaining(`file.json: entry 0${path === '' ? '' : ` ${path}`}`) as string,
    })
  })

  it('keeps a member called __proto__ a member', async () => {
    const snapshot = await snapshotOf(
      parsed('[{"name":"a/b","version":"1","description":"d","__proto__":{"x":1}}]').items,
    )
    expect(snapshot.entries[0]?.json).toContain('"__proto__":{"x":1}')
    expect(({} as { x?: unknown }).x).toBeUndefined()
  })

  it('comes once per version', async () => {
    await expect(snapshotOf([entry('a/b', '1.0.0'), entry('a/b', '1.0.0')])).rejects.toMatchObject({
      problem: 'invalid',
    })
  })

  it('keeps what else _meta says', async () => {
    const snapshot = await snapshotOf([{ server, _meta: { 'com.example/rating': 5 } }])
    expect(JSON.parse(snapshot.entries[0]?.json ?? '')).toMatchObject({ _meta: { 'com.example/rating': 5 } })
  })
})

describe('the order of versions', () => {
  it('is that of Semantic Versioning 2.0.0 §11, with everything else before', () => {
    const ordered = [
      'a-name',
      'nightly',
      '1.0.0-alpha',
      '1.0.0-alpha.1',
      '1.0.0-alpha.beta',
      '1.0.0-beta',
      '1.0.0-beta.2',
      '1.0.0-beta.11',
      '1.0.0-rc.1',
      '1.0.0',
      'v1.0.1',
      '1.2.0',
      '1.10.0',
      '2.0.0',
      '99999999999999999999.0.0',
    ]
    expect(ordered.toReversed().toSorted(compareVersions)).toEqual(ordered)
    for (const version of ordered) expect(compareVersions(version, version)).toBe(0)
    expect(compareVersions('1.0.0+a', '1.0.0+b')).toBe(0)
  })
})
