import { describe, expect, test } from 'vitest'
import { ANONYMOUS, callersMap, COMPLETE, injected, pod, refusalOf } from '../../support/operator/injected-pod.ts'

const PROVIDER = { name: 'idp', issuerUrl: 'https://idp.example.com', audience: 'mcp' }
const oauth = (more: object) =>
  callersMap({ auth: { oauth: { resourceUrl: 'https://mcp.example.com', providers: [{ ...PROVIDER, ...more }] } } })
const namesOf = (callers = ANONYMOUS) => injected(pod(), undefined, callers).spec.volumes.map(({ name }) => name)

const TOKEN = '/var/run/secrets/kubernetes.io/serviceaccount/token'

describe('the callers of a sidecar', () => {
  test('get it a token of the cluster where they are service accounts, and nowhere else', () => {
    expect(namesOf(oauth({}))).not.toContain('extauth-cluster')
    expect(namesOf(oauth({ authTokenFile: TOKEN }))).toContain('extauth-cluster')
  })

  test('may name keys of Secrets and authorities, which are mounted where the proxy looks', () => {
    const callers = oauth({
      clientId: 'c',
      clientSecretRef: { name: 'idp', key: 'secret' },
      caBundleRef: { configMapRef: { name: 'roots', key: 'ca.crt' } },
    })
    const { spec } = injected(pod(), undefined, callers)
    expect(spec.volumes.slice(2)).toEqual([
      {
        name: 'extauth-secret-github',
        secret: { secretName: 'github', optional: true, defaultMode: 0o444, items: [{ key: 'token', path: 'token' }] },
      },
      {
        name: 'extauth-secret-idp',
        secret: { secretName: 'idp', optional: true, defaultMode: 0o444, items: [{ key: 'secret', path: 'secret' }] },
      },
      {
        name: 'extauth-ca-roots',
        configMap: { name: 'roots', optional: true, items: [{ key: 'ca.crt', path: 'ca.crt' }] },
      },
    ])
    expect(spec.initContainers[0]?.volumeMounts).toEqual(
      expect.arrayContaining([
        { name: 'extauth-secret-idp', mountPath: '/etc/extauth-secrets/idp', readOnly: true },
        { name: 'extauth-ca-roots', mountPath: '/etc/extauth-secrets/roots', readOnly: true },
      ]),
    )
  })

  test.each([
    [
      'that are no section',
      callersMap({ oauth: {} }),
      'the ConfigMap "callers" can\'t be used: oauth.resourceUrl: missing',
    ],
    ['in no key of that name', { ...ANONYMOUS, data: {} }, 'has no key callers.yaml'],
    ['that are no YAML', { ...ANONYMOUS, data: { 'callers.yaml': '{' } }, "can't be used"],
    ['that are longer than any', { ...ANONYMOUS, data: { 'callers.yaml': ' '.repeat(300_000) } }, 'has more than'],
  ])('%s are refused with their pod', (_what, callers, says) => {
    expect(refusalOf(pod(), undefined, callers)).toContain(says)
  })
})

describe('the grace period of an injected pod', () => {
  const graceOf = (spec: object) => injected(pod(COMPLETE, spec)).spec.terminationGracePeriodSeconds

  test('is raised to the drain grace and 15 s more where it is lower or left out', () => {
    expect(graceOf({})).toBe(45)
    expect(graceOf({ terminationGracePeriodSeconds: 30 })).toBe(45)
    expect(graceOf({ terminationGracePeriodSeconds: 0 })).toBe(45)
    expect(graceOf({ terminationGracePeriodSeconds: 120 })).toBe(120)
  })

  test('is raised again after another webhook lowers it', () => {
    const once = injected(pod())
    const lowered = { ...once, spec: { ...once.spec, terminationGracePeriodSeconds: 10 } }
    expect(injected(lowered).spec.terminationGracePeriodSeconds).toBe(45)
  })
})
