import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { inClusterSettings, readKubeconfig } from '../../../src/kube/index.ts'

const directory = mkdtempSync(path.join(tmpdir(), 'extauth-kube-'))
afterAll(() => rmSync(directory, { recursive: true }))

const config = (user: object, cluster: object = {}) => ({
  'current-context': 'dev',
  contexts: [{ name: 'dev', context: { cluster: 'c', user: 'u', namespace: 'tools' } }],
  clusters: [{ name: 'c', cluster: { server: 'https://10.0.0.1:6443/', ...cluster } }],
  users: [{ name: 'u', user }],
})

test('a pod finds its server, its token and its namespace', () => {
  writeFileSync(path.join(directory, 'namespace'), 'team-a\n')
  const env = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' }
  expect(inClusterSettings(env, directory)).toMatchObject({
    server: 'https://[fd00::1]:443',
    token: { file: `${directory}/token` },
    ca: { file: `${directory}/ca.crt` },
    namespace: 'team-a',
    insecureSkipVerify: false,
  })
  expect(inClusterSettings({}, directory)).toBeUndefined()
})

test('a kubeconfig gives server, namespace and credentials; files are relative to it', () => {
  const settings = readKubeconfig(
    config({ tokenFile: 'token' }, { 'certificate-authority-data': Buffer.from('PEM').toString('base64') }),
    '/home/me/.kube/config',
  )
  expect(settings).toMatchObject({
    server: 'https://10.0.0.1:6443',
    namespace: 'tools',
    token: { file: '/home/me/.kube/token' },
  })
  // TLS is verified unless it says in so many words that it is not to be.
  const verifies = (value: unknown) => readKubeconfig(config({}, { 'insecure-skip-tls-verify': value }), 'kubeconfig')
  expect([undefined, null, 'true', 1, false].map((value) => verifies(value).insecureSkipVerify)).not.toContain(true)
  expect(verifies(true).insecureSkipVerify).toBe(true)
  expect(settings.ca !== undefined && 'value' in settings.ca && settings.ca.value.reveal()).toBe('PEM')
})

test.each([
  ['nothing at all', undefined, /no current-context/],
  ['another context', { ...config({}), 'current-context': 'prod' }, /no context "prod"/],
  ['no server', config({}, { server: '' }), /no usable server/],
  ['a plugin', config({ exec: { command: 'aws' } }), /plugin/],
])('a kubeconfig with %s is refused in words', (_what, parsed, message) => {
  expect(() => readKubeconfig(parsed, 'kubeconfig')).toThrow(message)
})
