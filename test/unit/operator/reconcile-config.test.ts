import { describe, expect, test } from 'vitest'
import type { KubeObject } from '../../../src/kube/index.ts'
import { type ConfigSnapshot, reconcileConfig } from '../../../src/operator/config/reconcile-config.ts'
import { ownTypes } from '../../../src/operator/index.ts'

const type = ownTypes('extauth.dev').MCPExternalAuthConfig
const FINALIZER = 'extauth.dev/external-auth-references'
const NOW = new Date('2026-11-22T10:00:00.500Z')

const object = (more: Partial<KubeObject['metadata']> = {}, status?: unknown): KubeObject => ({
  apiVersion: 'extauth.dev/v1alpha1',
  kind: 'MCPExternalAuthConfig',
  metadata: { name: 'c', namespace: 'n', generation: 3, resourceVersion: '7', ...more },
  spec: { type: 'unauthenticated' },
  ...(status === undefined ? {} : { status }),
})

const look = (more: Partial<ConfigSnapshot> = {}) =>
  reconcileConfig({
    object: object({ finalizers: [FINALIZER] }),
    type,
    verdict: { problems: [], configHash: 'abc' },
    workloads: [],
    isInjectable: true,
    pods: [],
    oldPods: [],
    secrets: 'unknown',
    isNamespaceTerminating: false,
    finalizer: FINALIZER,
    ownsKind: true,
    now: NOW,
    ...more,
  })

const statusOf = (plan: ReturnType<typeof look>) =>
  plan.actions.find((action) => action.do === 'apply_status')?.object.status as {
    readonly conditions: readonly {
      readonly type: string
      readonly status: string
      readonly reason: string
      readonly message: string
      readonly lastTransitionTime: string
    }[]
    readonly [field: string]: unknown
  }
const conditionOf = (plan: ReturnType<typeof look>, name: string) =>
  statusOf(plan).conditions.find((condition) => condition.type === name)

describe('status', () => {
  test('a valid config says so, with its hash, its generation and who refers to it, sorted and each once', () => {
    const workloads = [
      { kind: 'MCPServer', name: 'b' },
      { kind: 'MCPServer', name: 'a' },
      { kind: 'MCPRemoteProxy', name: 'a' },
      { kind: 'MCPServer', name: 'a' },
    ] as const
    const plan = look({ workloads })
    expect(statusOf(plan)).toMatchObject({
      observedGeneration: 3,
      configHash: 'abc',
      referenceCount: 3,
      referencingWorkloads: [
        { kind: 'MCPRemoteProxy', name: 'a' },
        { kind: 'MCPServer', name: 'a' },
        { kind: 'MCPServer', name: 'b' },
      ],
    })
    expect(statusOf(plan).conditions.map((one) => `${one.type}=${one.status} ${one.reason}`)).toEqual([
      'Valid=True ValidationSucceeded',
      'SecretsResolved=Unknown SecretsNotWatched',
      'Ready=True ConfigReady',
      'DeletionBlocked=False NotReferenced',
      'InjectedPodsCurrent=Unknown NoInjectedPods',
    ])
    expect(conditionOf(plan, 'Valid')?.lastTransitionTime).toBe('2026-11-22T10:00:00Z')
  })

  test('nothing is written when nothing has changed', () => {
    const status = statusOf(look())
    expect(
      look({ object: object({ finalizers: [FINALIZER] }, status), now: new Date(NOW.getTime() + 60_000) }),
    ).toEqual({
      actions: [],
      events: [],
    })
  })

  test('an invalid spec is reported with its paths, keeps the last hash, and updates only changed transition times', () => {
    const before = statusOf(look())
    const later = new Date(NOW.getTime() + 60_000)
    const plan = look({
      object: object({ finalizers: [FINALIZER] }, before),
      verdict: { problems: ['spec.type: unknown'], configHash: undefined },
      now: later,
    })
    expect(conditionOf(plan, 'Valid')).toMatchObject({
      status: 'False',
      message: 'spec.type: unknown',
      lastTransitionTime: '2026-11-22T10:01:00Z',
    })
    expect(conditionOf(plan, 'DeletionBlocked')).toMatchObject({ lastTransitionTime: '2026-11-22T10:00:00Z' })
    expect(statusOf(plan)['configHash']).toBe('abc')
    expect(plan.events.map(({ type: kind, reason, note }) => `${kind} ${reason} ${note}`)).toEqual([
      'Warning ValidationFailed Valid: spec.type: unknown',
      'Normal ValidationFailed SecretsResolved: not evaluated while the configuration is not valid',
      'Warning ValidationFailed Ready: the configuration is not valid; see Valid',
    ])
  })

  test('a missing Secret is named where Secrets are watched', () => {
    const plan = look({ secrets: { missing: ['one', 'two'], barred: [] } })
    expect(conditionOf(plan, 'SecretsResolved')).toMatchObject({ status: 'False', message: 'missing: one, two' })
    expect(conditionOf(plan, 'Ready')).toMatchObject({ status: 'False', reason: 'SecretsMissing' })
  })

  test('a message stays within what the API takes', () => {
    const plan = look({ verdict: { problems: ['💥'.repeat(40_000)], configHash: undefined } })
    expect(conditionOf(plan, 'Valid')?.message.length).toBeLessThanOrEqual(32_768)
    expect(conditionOf(plan, 'Valid')?.message.isWellFormed()).toBe(true)
  })
})

describe('deletion', () => {
  const deleting = object({ finalizers: ['other/one', FINALIZER], deletionTimestamp: '2026-11-22T09:59:00Z' })

  test('a config gets the finalizer and keeps those of others', () => {
    expect(look({ object: object({ finalizers: ['other/one'] }) }).actions[0]).toMatchObject({
      do: 'set_finalizers',
      finalizers: ['other/one', FINALIZER],
    })
  })

  test('pods that were injected for it hold it as well, and are named', () => {
    const plan = look({ object: deleting, pods: ['p-1'] })
    expect(plan.actions.some((action) => action.do === 'set_finalizers')).toBe(false)
    expect(conditionOf(plan, 'DeletionBlocked')).toMatchObject({
      status: 'True',
      message: 'deletion waits until nothing refers to it: injected pods: p-1',
    })
  })

  test('while a workload refers to it, it stays, and says who and which pods', () => {
    const plan = look({ object: deleting, workloads: [{ kind: 'MCPServer', name: 'a' }], pods: ['p-1'] })
    expect(plan.actions.map((action) => action.do)).toEqual(['apply_status'])
    expect(conditionOf(plan, 'DeletionBlocked')).toMatchObject({
      status: 'True',
      reason: 'ReferencedByWorkloads',
      message: 'deletion waits until nothing refers to it: MCPServer/a; injected pods: p-1',
    })
    expect(plan.events.filter(({ reason }) => reason === 'ReferencedByWorkloads')).toHaveLength(1)
  })

  test.each([
    ['the last reference is gone', {}],
    ['nothing refers to it', {}],
    ['its namespace ends', { workloads: [{ kind: 'MCPServer', name: 'a' } as const], isNamespaceTerminating: true }],
  ])('it goes when %s', (_what, more) => {
    expect(look({ object: deleting, ...more })).toEqual({
      actions: [{ do: 'set_finalizers', type, object: deleting, finalizers: ['other/one'] }],
      events: [],
    })
  })
})

test('beside another operator there is no finalizer, and only conditions under our own prefix', () => {
  const theirs = {
    type: 'Ready',
    status: 'True',
    reason: 'Fine',
    message: '',
    lastTransitionTime: '2026-11-22T09:00:00Z',
  }
  const stored = object({}, { phase: 'Ready', conditions: [theirs] })
  const plan = look({ object: stored, ownsKind: false, workloads: [{ kind: 'MCPServer', name: 'a' }] })
  const [action] = plan.actions
  if (action?.do !== 'set_conditions' || plan.actions.length > 1)
    throw new Error('expected conditions and nothing else')
  const [first, ...ours] = action.conditions
  expect(first).toEqual(theirs)
  expect(ours.map((one) => one.type)).toEqual([
    'extauth.dev/Valid',
    'extauth.dev/SecretsResolved',
    'extauth.dev/Ready',
    'extauth.dev/DeletionBlocked',
    'extauth.dev/InjectedPodsCurrent',
  ])
  // Unchanged conditions are not written again, in any order of the other operator.
  const again = object({}, { conditions: [...ours, theirs] })
  expect(look({ object: again, ownsKind: false }).actions).toEqual([])
})
