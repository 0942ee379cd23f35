import { describe, expect, test } from 'vitest'
import { mutatingConfiguration, ownTypes, podKeys, validatingConfiguration } from '../../../src/operator/index.ts'
import { readReview, reviewOf } from '../../../src/operator/webhook/review.ts'
import { decideValidation } from '../../../src/operator/webhook/validate.ts'

const REQUEST = { uid: 'u', kind: { group: 'g', version: 'v', kind: 'K' }, namespace: 'n', operation: 'CREATE' }
const review = (request: unknown, more: object = {}) => ({
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  request,
  ...more,
})

/** A valid object, so that only the changed part is rejected. */
const GOOD = { ...REQUEST, object: { metadata: { name: 'a' }, spec: {} } }

describe('a review', () => {
  test('that is good is one', () => {
    expect(readReview(review(GOOD))).toMatchObject({ uid: 'u', object: GOOD.object })
  })

  test('is read as it is', () => {
    expect(readReview(review({ ...REQUEST, dryRun: true, object: { metadata: { name: 'a' } } }))).toEqual({
      ...REQUEST,
      object: { metadata: { name: 'a' } },
      isDryRun: true,
    })
    // The object of a delete is null.
    expect(readReview(review({ ...REQUEST, operation: 'DELETE', object: null }))).toMatchObject({
      object: undefined,
      isDryRun: false,
    })
  })

  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['a list', [review(GOOD)]],
    ['another kind', review(GOOD, { kind: 'Pod' })],
    ['another version', review(GOOD, { apiVersion: 'admission.k8s.io/v1beta1' })],
    ['no request', review(undefined)],
    ['no number', review({ ...GOOD, uid: '' })],
    ['a number that is none', review({ ...GOOD, uid: 1 })],
    ['no kind', review({ ...GOOD, kind: 'K' })],
    ['an object that is none', review({ ...GOOD, object: 'x' })],
  ])('is none: %s', (_what, body) => {
    expect(readReview(body)).toBeUndefined()
  })

  test('is answered with its number, and with warnings and a patch as the API server takes them', () => {
    expect(reviewOf('u', { allowed: false, message: 'no' })).toMatchObject({
      response: { uid: 'u', allowed: false, status: { code: 422, message: 'no' } },
    })
    const warnings = Array.from({ length: 20 }, () => 'w'.repeat(300))
    const { response } = reviewOf('u', { allowed: true, warnings, patch: [{ op: 'add' }] }) as {
      response: { warnings: string[]; patch: string; patchType: string }
    }
    expect([response.warnings.length, response.warnings[0]?.length]).toEqual([16, 256])
    expect([response.patchType, Buffer.from(response.patch, 'base64').toString()]).toEqual([
      'JSONPatch',
      '[{"op":"add"}]',
    ])
    expect(reviewOf('u', { allowed: true })).toMatchObject({ response: { uid: 'u', allowed: true } })
  })
})

describe('a config', () => {
  const decide = (spec: object | undefined, missing: { kind: string; name: string }[] = []) =>
    decideValidation(
      {
        ...REQUEST,
        isDryRun: false,
        object:
          spec === undefined
            ? undefined
            : { apiVersion: 'extauth.dev/v1alpha1', kind: 'MCPExternalAuthConfig', metadata: { name: 'a' }, spec },
      },
      { apiGroup: 'extauth.dev', missing: () => missing },
    )

  test('that validate would refuse is refused, with why', () => {
    const decision = decide({ type: 'bearerToken' })
    expect(decision).toMatchObject({ allowed: false, message: expect.stringContaining('bearerToken') as string })
  })

  test('is validated by its spec only, not by the status of a newer operator', () => {
    const object = {
      apiVersion: 'extauth.dev/v1alpha1',
      kind: 'MCPExternalAuthConfig',
      metadata: { name: 'a' },
      spec: { type: 'unauthenticated' },
      status: { fieldOfTheNextVersion: { a: 1 }, conditions: [{ type: 'New' }] },
    }
    expect(
      decideValidation({ ...REQUEST, isDryRun: false, object }, { apiGroup: 'extauth.dev', missing: () => [] }),
    ).toEqual({ allowed: true, warnings: [] })
  })

  test('that is good is let in; what it refers to may come later', () => {
    expect(decide({ type: 'unauthenticated' }, [{ kind: 'MCPExternalAuthConfig', name: 'b' }])).toEqual({
      allowed: true,
      warnings: ['there is no MCPExternalAuthConfig "b" in namespace "n" yet'],
    })
    expect(decide(undefined)).toEqual({ allowed: true })
  })
})

describe('the configurations', () => {
  const options = {
    name: 'extauth',
    types: ownTypes('extauth.dev'),
    keys: podKeys('extauth.dev'),
    target: { service: { namespace: 'ns', name: 's', port: 443 } },
    caBundle: 'PEM',
    ownNamespace: 'ns',
  }
  interface Webhook {
    readonly failurePolicy: string
    readonly timeoutSeconds: number
    readonly clientConfig: object
    readonly namespaceSelector: object
    readonly objectSelector?: object
    readonly matchConditions?: readonly { readonly expression: string }[]
    readonly rules: readonly { readonly operations: readonly string[]; readonly resources: readonly string[] }[]
  }
  const hookOf = (of: typeof validatingConfiguration): Webhook | undefined =>
    (of(options)['webhooks'] as readonly Webhook[])[0]

  test.each([validatingConfiguration, mutatingConfiguration])('fail closed: %o', (of) => {
    expect(hookOf(of)).toMatchObject({
      failurePolicy: 'Fail',
      timeoutSeconds: 3,
      clientConfig: { caBundle: Buffer.from('PEM').toString('base64') },
      // The operator itself, and what it runs on, never wait for it.
      namespaceSelector: {
        matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['ns', 'kube-system'] }],
      },
    })
  })

  test('are about our kinds when their spec changes, and about pods that ask', () => {
    const [validating, mutating] = [hookOf(validatingConfiguration), hookOf(mutatingConfiguration)]
    // Objects of all versions come as the oldest, which an older replica knows too.
    expect(validating).toMatchObject({ matchPolicy: 'Equivalent' })
    expect(validating?.rules[0]).toMatchObject({ operations: ['CREATE', 'UPDATE'], apiVersions: ['v1alpha1'] })
    expect(validating?.rules[0]?.resources).toContain('mcpexternalauthconfigs')
    expect(validating?.matchConditions?.[0]?.expression).toContain('object.?spec != oldObject.?spec')
    const key = 'extauth.dev/inject'
    expect(mutating?.objectSelector).toEqual({
      matchExpressions: [
        { key, operator: 'Exists' },
        { key, operator: 'NotIn', values: ['false'] },
      ],
    })
    expect(mutating?.rules[0]).toMatchObject({ operations: ['CREATE'], resources: ['pods'] })
  })
})
