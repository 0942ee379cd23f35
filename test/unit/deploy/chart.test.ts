import { readFileSync } from 'node:fs'
import path from 'node:path'
import { Ajv } from 'ajv'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { CHART, hashOfChart, objectsIn, readRecord, readValues, RENDERINGS } from '../../support/deploy/chart-record.ts'

const BASE = path.join(CHART, '../../config/deploy/operator')

/** Texts of the manifests that a Kustomization without patches holds. */
function* textsOf(folder: string): Generator<string> {
  const { resources } = parse(readFileSync(path.join(folder, 'kustomization.yaml'), 'utf8')) as { resources: string[] }
  for (const name of resources) {
    if (name.endsWith('.yaml')) yield readFileSync(path.join(folder, name), 'utf8')
    else yield* textsOf(path.join(folder, name))
  }
}

test('what Helm makes of the chart is the Kustomize base, field by field', () => {
  const { chart, objects } = readRecord()
  // Else: npm run test:cluster -- --record chart
  expect(chart).toBe(hashOfChart())
  const base = objectsIn([...textsOf(BASE)].join('\n---\n'))
  expect(objects['config/deploy/operator']).toEqual(base)
  expect(Object.keys(base).length).toBeGreaterThan(15)
  expect(Object.keys(objects)).toEqual(RENDERINGS.map(([folder]) => folder))
})

test('values for a cluster reach the pods of the operator, its policy, and what it makes', () => {
  const { values, made } = readValues()
  const { template } = made.Deployment.spec
  const { nodeSelector, tolerations, affinity, priorityClassName, imagePullSecrets, podAnnotations } = values
  const ofPods = { nodeSelector, tolerations, affinity, priorityClassName, imagePullSecrets }
  expect(template.spec).toMatchObject(ofPods)
  expect(template.metadata.annotations).toMatchObject(podAnnotations as object)
  expect(template.spec.securityContext).not.toHaveProperty('runAsUser')
  const args = template.spec.containers[0]?.args ?? []
  const { dns, apiServer } = values['networkPolicy'] as { dns: object; apiServer: object }
  const ruleOf = (option: string): unknown =>
    JSON.parse(args.find((one) => one.startsWith(`${option}=`))?.slice(option.length + 1) ?? '{}')
  expect([ruleOf('--dns-egress'), ruleOf('--api-server-egress')]).toEqual([dns, apiServer])
  expect(args).toEqual(
    expect.arrayContaining([
      '--platform-user',
      `--log-level=${String(values['logLevel'])}`,
      `--image=${String(values['proxyImage'])}`,
      ...(values['extraArgs'] as string[]),
    ]),
  )
  const { egress } = made.NetworkPolicy.spec
  expect(egress).toEqual(expect.arrayContaining([dns, apiServer]))
  // The third leads to the admin ports of proxies.
  expect(egress).toHaveLength(3)
})

test('the values have a schema, which their defaults pass and misspelled ones do not', () => {
  const schema = JSON.parse(readFileSync(path.join(CHART, 'values.schema.json'), 'utf8')) as object
  const { $schema: _draft, ...keywords } = schema as { $schema: string }
  const accepts = new Ajv().compile(keywords)
  const values = parse(readFileSync(path.join(CHART, 'values.yaml'), 'utf8')) as Record<string, unknown>
  expect(accepts(values)).toBe(true)
  expect(Object.keys(values).sort()).toEqual(
    Object.keys((schema as { properties: object }).properties)
      .filter((name) => name !== 'global')
      .sort(),
  )
  for (const wrong of [{ replica: 2 }, { replicas: 0 }, { image: '' }, { namespace: { create: true, name: 'A' } }])
    expect(accepts({ ...values, ...wrong })).toBe(false)
  // Labels of Secrets are seen only where Secrets are watched.
  expect(accepts({ ...values, secretsByLabel: true })).toBe(false)
  expect(accepts({ ...values, secretsByLabel: true, watchSecrets: true })).toBe(true)
})

test('each value is documented', () => {
  const values = parse(readFileSync(path.join(CHART, 'values.yaml'), 'utf8')) as Record<string, unknown>
  const readme = readFileSync(path.join(CHART, 'README.md'), 'utf8')
  for (const name of Object.keys(values)) expect(readme).toMatch(new RegExp(`^\\| \`${name}[\`.]`, 'm'))
})
