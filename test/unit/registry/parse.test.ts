import { describe, expect, it } from 'vitest'
import { parseDocument } from '../../../src/registry/document.ts'
import { validateItems } from '../../../src/registry/parse.ts'
import { compareVersions } from '../../../src/registry/listing/version-order.ts'
import { entry, snapshotOf, T0 } from '../../support/registry/setup.ts'

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
    ["ToolHive's form", { version: '1.0.0', meta: {}, data: { servers: [server], groups: [] } }, 1],
  ])('may be %s', async (_, value, count) => {
    const { items } = parsed(value)
    expect((await validateItems(items, 'x', T0)).listed).toHaveLength(count)
  })

  it("says when it was made, in ToolHive's form", () => {
    const data = { servers: [] }
    expect(parsed({ meta: { last_updated: '2026-01-15T10:30:00Z' }, data }).updatedMs).toBe(1_768_473_000_000)
    expect(parsed({ meta: { last_updated: 'lately' }, data }).updatedMs).toBeUndefined()
    expect(parsed({ data }).updatedMs).toBeUndefined()
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
    ["ToolHive's form without a list", '{"data": {"groups": []}}', 'invalid'],
    ['an object without servers', '{"version": "1"}', 'invalid'],
    ['an empty object', '{}', 'invalid'],
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
    [
      'a URL that begins with a variable',
      { ...server, remotes: [{ type: 'streamable-http', url: '{base_url}/mcp', variables: { base_url: {} } }] },
    ],
    ['a version with a space', { ...server, version: '1.0 beta' }],
    ['a hundred emoji to describe it', { ...server, description: '😀'.repeat(100) }],
    ['a repository behind SSH', { ...server, repository: { url: 'git+ssh://git@example.com/a.git', source: 'git' } }],
    ['a long link', { ...server, websiteUrl: `https://example.com/${'a'.repeat(5000)}` }],
    [
      'a package of no known kind',
      { ...server, packages: [{ registryType: '', identifier: '', transport: { type: 'sse', url: '{x}' } }] },
    ],
    ['an icon', { ...server, icons: [{ src: 'https://example.com/i.png', sizes: ['48x48', 'any'], theme: 'dark' }] }],
  ])('may have %s, and is served as it was written', async (_, item) => {
    const { listed, skipped } = await judge(item)
    expect(listed[0]?.response.server).toEqual(item)
    expect(skipped.count).toBe(0)
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
    ['a version of two', { ...server, version: '1.0.0 - 2.0.0' }, 'version'],
    [
      'a status that is none',
      entry('com.example/a', '1.0.0', { status: 'retired' }),
      '_meta.io.modelcontextprotocol.registry/official.status',
    ],
    ['nothing', null, ''],
    ['text', 'com.example/a', ''],
  ])('is skipped, and reported with its location, when it has %s', async (_, item, path) => {
    const { listed, skipped } = await validateItems([server, item], 'file.json', T0)
    expect([listed.length, skipped.count]).toEqual([1, 1])
    expect(skipped.first[0]).toContain(`file.json: entry 1: ${path}`)
  })

  it.each([
    ['a website that is a script', { ...server, websiteUrl: 'javascript:alert(1)' }, 'websiteUrl'],
    ['one that hides it', { ...server, websiteUrl: 'java\nscript:alert(1)' }, 'websiteUrl'],
    ['an icon that is its own data', { ...server, icons: [{ src: 'data:image/png;base64,AA' }] }, 'icons.0.src'],
    ['a URL that is no template', { ...server, remotes: [{ type: 'sse', url: '{1}/mcp' }] }, 'remotes.0.url'],
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
      'a date that is none',
      entry('com.example/a', '1.0.0', { updatedAt: 'yesterday' }),
      '_meta.io.modelcontextprotocol.registry/official.updatedAt',
    ],
    ['a repository that is empty', { ...server, repository: {} }, 'repository.url'],
    ['icons that are none', { ...server, icons: 'none' }, 'icons'],
  ])('loses the field, and is reported with its location, when it has %s', async (_, item, path) => {
    const { listed, skipped } = await validateItems([server, item], 'file.json', T0)
    expect(skipped).toMatchObject({ count: 0, amended: 1 })
    expect(skipped.first[0]).toContain(`file.json: entry 1: ${path}`)
    const { websiteUrl, repository, icons, packages, remotes } = listed[1]?.response.server ?? {}
    expect([websiteUrl, repository, icons ?? [], packages ?? [], remotes ?? []]).toEqual([
      undefined,
      undefined,
      [],
      [],
      [],
    ])
  })

  it('takes null for absent, wherever that may be, and says nothing of it', async () => {
    const sound = { registryType: 'npm', identifier: 'x', transport: { type: 'stdio' } }
    const item = { ...server, title: null, repository: null, packages: [{ ...sound, runtimeHint: null }, null] }
    const { listed, skipped } = await validateItems([item, { ...server, name: null }], 'f', T0)
    expect(listed.map(({ response }) => response.server)).toEqual([{ ...server, packages: [sound] }])
    expect(skipped).toMatchObject({ count: 1, amended: 0 })
  })

  it('keeps valid fields beside invalid ones', async () => {
    const remotes = [{ type: 'sse', url: 'https://a.example/mcp' }, { type: 'stdio' }, { type: 'sse', url: '{x}' }]
    const { listed } = await validateItems([{ ...server, websiteUrl: 5, remotes }], 'f', T0)
    expect(listed[0]?.response.server).toEqual({ ...server, remotes: [remotes[0], remotes[2]] })
  })

  it('is skipped when too many of its fields are invalid', async () => {
    const { listed, skipped } = await validateItems([{ ...server, icons: Array(30).fill(5) }], 'f', T0)
    expect([listed.length, skipped.count]).toEqual([0, 1])
  })

  it('is reported by location five times at most', async () => {
    const { skipped } = await validateItems([...Array.from({ length: 9 }, () => null), server], 'f', T0)
    expect(skipped).toMatchObject({ count: 9, first: { length: 5 } })
  })

  it('that cannot be served is no registry when there is no other', async () => {
    await expect(snapshotOf([null])).rejects.toMatchObject({ problem: 'invalid' })
    expect((await snapshotOf([])).entries).toEqual([])
  })

  it('keeps a member called __proto__ a member', async () => {
    const snapshot = await snapshotOf(
      parsed('[{"name":"a/b","version":"1","description":"d","__proto__":{"x":1}}]').items,
    )
    expect(snapshot.entries[0]?.json).toContain('"__proto__":{"x":1}')
    expect(({} as { x?: unknown }).x).toBeUndefined()
  })

  it('counts once per version, the first', async () => {
    const { entries, skipped } = await snapshotOf([
      entry('a/b', '1.0.0', { status: 'deprecated' }),
      entry('a/b', '1.0.0'),
      entry('a/b', '2.0.0'),
    ])
    expect(entries.map(({ version }) => version)).toEqual(['1.0.0', '2.0.0'])
    expect(entries[0]?.json).toContain('deprecated')
    expect(skipped).toEqual({ count: 1, amended: 0, first: ['a/b: a version is listed twice'] })
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
