import { describe, expect, test } from 'vitest'
import { COMPLETE, CONFIG, decide, injected, keys, pod, refusalOf } from '../../support/operator/injected-pod.ts'

describe('a pod that asks for the sidecar', () => {
  test('gets it first among its init containers, and keeps its own', () => {
    const own = { initContainers: [{ name: 'migrate' }], volumes: [{ name: 'data', emptyDir: {} }] }
    const { spec } = injected(pod(COMPLETE, own))
    expect(spec.initContainers.map(({ name }) => name)).toEqual(['extauth', 'migrate'])
    expect(spec.volumes.map(({ name }) => name)).toEqual([
      'data',
      'extauth-config',
      'extauth-callers',
      'extauth-secret-github',
    ])
    const [sidecar] = spec.initContainers
    expect(sidecar?.restartPolicy).toBe('Always')
    expect(sidecar?.args).toEqual(
      expect.arrayContaining(['http://127.0.0.1:3000', '/etc/extauth/auth.yaml#github', '--listen', ':8080']),
    )
    expect(sidecar?.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      runAsNonRoot: true,
      capabilities: { drop: ['ALL'] },
      runAsUser: 65532,
      runAsGroup: 65532,
      seccompProfile: { type: 'RuntimeDefault' },
    })
    expect(sidecar?.volumeMounts?.every(({ readOnly }) => readOnly)).toBe(true)
  })

  test('sees exactly the keys that its config names, in a volume that only the sidecar mounts', () => {
    const { spec } = injected(pod())
    expect(spec.volumes.find(({ name }) => name === 'extauth-secret-github')?.['secret']).toEqual({
      secretName: 'github',
      optional: true,
      defaultMode: 0o444,
      items: [{ key: 'token', path: 'token' }],
    })
  })

  test('is left alone when it comes back, and is done again when what it asks for is another', () => {
    const once = injected(pod())
    expect(decide(once)).toEqual({ allowed: true, patch: [] })
    const moved = {
      ...once,
      metadata: { ...once.metadata, annotations: { ...once.metadata.annotations, [keys.targetPort]: '3001' } },
    }
    const again = injected(moved)
    expect(again.spec.initContainers.map(({ name }) => name)).toEqual(['extauth'])
    expect(again.spec.initContainers[0]?.args).toContain('http://127.0.0.1:3001')
    expect(again.spec.volumes).toHaveLength(once.spec.volumes.length)
  })

  test.each(['True', 'yes', '1', ''])('is not one whose label says "%s", which is reported to its author', (value) => {
    expect(decide(pod(COMPLETE, {}, { [keys.inject]: value }))).toEqual({
      allowed: true,
      warnings: [`the label ${keys.inject} is "${value}": nothing is injected, expected "true"`],
    })
    expect(decide(pod(COMPLETE, {}, { [keys.inject]: 'false' }))).toEqual({ allowed: true })
  })

  test('is repeated after another webhook put a container in front', () => {
    const once = injected(pod())
    // It runs the same image: only its name differs.
    const initContainers = [{ ...once.spec.initContainers[0], name: 'first', ports: [] }, ...once.spec.initContainers]
    const again = injected({ ...once, spec: { ...once.spec, initContainers } })
    expect(again.spec.initContainers.map(({ name }) => name)).toEqual(['extauth', 'first'])
  })
})

describe('the annotation of an injected pod, copied to another pod', () => {
  const once = injected(pod())
  const [sidecar] = once.spec.initContainers
  test.each([
    ['another program', { args: ['proxy', '--target', 'http://127.0.0.1:1'] }],
    ['one that ends before the others', { restartPolicy: undefined }],
    ['a command in front', { command: ['sh', '-c'] }],
  ])('does not stand for the sidecar: %s of its name is replaced', (_what, more) => {
    const fake = { ...once, spec: { ...once.spec, initContainers: [{ ...sidecar, ...more }] } }
    expect(injected(fake).spec.initContainers).toEqual(once.spec.initContainers)
  })

  test('nor for its volumes', () => {
    const { spec } = injected({ ...once, spec: { ...once.spec, volumes: [] } })
    expect(spec.volumes).toEqual(once.spec.volumes)
  })

  test('stands where others have added to the sidecar', () => {
    const added = [...(sidecar?.volumeMounts ?? []), { name: 'kube-api-access', readOnly: true }]
    const initContainers = [{ ...sidecar, volumeMounts: added, terminationMessagePath: '/dev/termination-log' }]
    expect(decide({ ...once, spec: { ...once.spec, initContainers } })).toEqual({ allowed: true, patch: [] })
  })
})

describe('a pod is let in as it is', () => {
  test.each([
    ['without the label', pod(COMPLETE, {}, {})],
    ['with another value of it', pod(COMPLETE, {}, { [keys.inject]: 'false' })],
    ['which is not there', undefined],
  ])('%s', (_what, object) => {
    expect(decide(object)).toEqual({ allowed: true })
  })
})

describe('a pod is refused', () => {
  test.each<[string, Record<string, string | undefined>, string]>([
    ['without a config', { [keys.externalAuth]: undefined }, `the annotation ${keys.externalAuth} is missing`],
    [
      'whose config is not a valid name',
      { [keys.externalAuth]: '../x' },
      `the annotation ${keys.externalAuth} is not a valid name`,
    ],
    ['whose name is too long', { [keys.externalAuth]: 'a'.repeat(254) }, 'is not a valid name'],
    ['without callers', { [keys.callers]: undefined }, `the annotation ${keys.callers} is missing`],
    ['without a target', { [keys.targetPort]: undefined }, `the annotation ${keys.targetPort} is missing`],
    ['whose target is no port', { [keys.targetPort]: '70000' }, `the annotation ${keys.targetPort} is no port`],
    ['whose target is zero', { [keys.targetPort]: '0' }, 'is no port'],
    ['whose ports are one', { [keys.targetPort]: '8080' }, 'name the same port'],
    ['whose target is for probes', { [keys.targetPort]: '8081' }, "port 8081 is the proxy's own"],
    ['that listens where probes are', { [keys.listenPort]: '8081' }, "port 8081 is the proxy's own"],
    ['whose config is not there', { [keys.externalAuth]: 'gitlab' }, 'which does not exist in namespace "n"'],
    ['whose callers are not there', { [keys.callers]: 'nobody' }, 'which does not exist in namespace "n"'],
    ['with an annotation that is misspelled', { 'extauth.dev/listenport': '80' }, `did you mean ${keys.listenPort}?`],
    ['with an unknown annotation', { 'extauth.dev/x': '80' }, 'extauth.dev/x is not known, expected one of'],
  ])('%s', (_what, change, says) => {
    const annotations = Object.entries({ ...COMPLETE, ...change }).filter(([, value]) => value !== undefined)
    expect(refusalOf(pod(Object.fromEntries(annotations) as Record<string, string>))).toContain(says)
  })

  test('that shares the loopback of its node: the backend would be open to all pods there', () => {
    expect(refusalOf(pod(COMPLETE, { hostNetwork: true }))).toContain('hostNetwork: true')
  })

  test('whose container has the port already', () => {
    const ports = [{ containerPort: 8080 }]
    expect(refusalOf(pod(COMPLETE, { containers: [{ name: 'web', ports }] }))).toContain('web already has port 8080')
    expect(decide(pod(COMPLETE, { containers: [{ name: 'web', ports: [{ containerPort: 3000 }] }] })).allowed).toBe(
      true,
    )
  })

  test('whose config cannot run, with why', () => {
    const problem = 'it names no role'
    expect(refusalOf(pod(), { ...CONFIG, problem })).toContain('cannot run as a sidecar: it names no role')
  })

  test('with all that is wrong at once', () => {
    expect(refusalOf(pod({})).split('\n')).toHaveLength(3)
  })
})
