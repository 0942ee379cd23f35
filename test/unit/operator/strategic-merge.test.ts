import { describe, expect, test } from 'vitest'
import { strategicMerge } from '../../../src/operator/remote-proxy/strategic-merge.ts'

// Each result is what `kubectl patch --local --type strategic` makes of a Deployment with this template, but for the order
// of what is added: ours stays first.
const CONTAINER = { name: 'extauth', image: 'i', args: ['a', 'b'], ports: [{ containerPort: 80, name: 'mcp' }] }
const BASE = {
  metadata: { annotations: { p: 'q' } },
  spec: {
    containers: [CONTAINER],
    securityContext: { runAsUser: 1, runAsNonRoot: true },
    volumes: [{ name: 'v', x: {} }],
  },
}
const merged = (spec: object): unknown => (strategicMerge(BASE, { spec }) as { spec: unknown }).spec

describe('a template is merged as by kubectl', () => {
  test.each([
    [
      'an item by its key',
      { containers: [{ name: 'extauth', image: 'j' }] },
      { containers: [{ ...CONTAINER, image: 'j' }] },
    ],
    ['an item that is new', { containers: [{ name: 'b' }] }, { containers: [CONTAINER, { name: 'b' }] }],
    [
      'a port by its number',
      { containers: [{ name: 'extauth', ports: [{ containerPort: 80, name: 'x' }, { containerPort: 9 }] }] },
      { containers: [{ ...CONTAINER, ports: [{ containerPort: 80, name: 'x' }, { containerPort: 9 }] }] },
    ],
    [
      'a list without a key whole',
      { containers: [{ name: 'extauth', args: ['c'] }] },
      { containers: [{ ...CONTAINER, args: ['c'] }] },
    ],
    ['null', { securityContext: null }, { securityContext: undefined }],
    ['null inside', { securityContext: { runAsUser: null } }, { securityContext: { runAsNonRoot: true } }],
    ['$patch: delete of an item', { volumes: [{ $patch: 'delete', name: 'v' }] }, { volumes: [] }],
    ['$patch: delete of an object', { securityContext: { $patch: 'delete' } }, { securityContext: {} }],
    ['$patch: replace of an object', { securityContext: { $patch: 'replace', a: 1 } }, { securityContext: { a: 1 } }],
    [
      '$patch: replace of a list',
      { containers: [{ $patch: 'replace' }, { name: 'b' }] },
      { containers: [{ name: 'b' }] },
    ],
    [
      '$retainKeys',
      { volumes: [{ $retainKeys: ['name', 'y'], name: 'v', y: {} }] },
      { volumes: [{ name: 'v', y: {} }] },
    ],
    [
      '$setElementOrder, which a template does not have',
      { '$setElementOrder/containers': [{ name: 'b' }], containers: [{ name: 'b' }] },
      { containers: [CONTAINER, { name: 'b' }] },
    ],
    [
      '$deleteFromPrimitiveList',
      { containers: [{ name: 'extauth', '$deleteFromPrimitiveList/args': ['a'] }] },
      { containers: [{ ...CONTAINER, args: ['b'] }] },
    ],
  ])('%s', (_what, patch, expected) => {
    expect(merged(patch)).toEqual({ ...BASE.spec, ...expected })
  })

  test('what it is merged into stays as it was', () => {
    const before = structuredClone(BASE)
    merged({ containers: [{ name: 'extauth', args: null, '$deleteFromPrimitiveList/args': ['a'] }], volumes: null })
    expect(BASE).toEqual(before)
  })
})
