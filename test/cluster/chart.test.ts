import { execFileSync, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import {
  CHART,
  type ChartRecord,
  hashOfChart,
  objectsIn,
  readRecord,
  readValues,
  RECORD_PATH,
  RENDERINGS,
  VALUES_PATH,
} from '../support/deploy/chart-record.ts'
import { findHelm } from './support/helm.ts'
import { root } from './support/operator-rig.ts'

const isRecording = process.env['EXTAUTH_RECORD'] === 'true'
const canBuild = process.env['CI'] === 'true' && spawnSync('go', ['version']).status === 0
const helm = findHelm(isRecording || canBuild)
const run = (program: string, args: readonly string[]): string =>
  execFileSync(program, args, { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024, stdio: ['ignore', 'pipe', 'pipe'] })

function rendered(binary: string): ChartRecord {
  const objects = RENDERINGS.map(([folder, values]) => {
    const sets = values.flatMap((value) => ['--set', value])
    return [
      folder,
      objectsIn(run(binary, ['template', 'mcp-extauth', CHART, '--kube-version', 'v1.30.0', ...sets])),
    ] as const
  })
  const version = /v\d+\.\d+/.exec(run(binary, ['version']))?.[0] ?? ''
  return { helm: version, chart: hashOfChart(), objects: Object.fromEntries(objects) }
}

test('Helm finds nothing wrong with the chart, and makes of it what is recorded', () => {
  if (helm === undefined) {
    process.stderr.write('helm is not there (EXTAUTH_HELM names one): what it made before is compared\n')
    expect(readRecord().chart).toBe(hashOfChart())
    return
  }
  if (isRecording) writeFileSync(RECORD_PATH, `${JSON.stringify(rendered(helm), undefined, 2)}\n`)
  expect(run(helm, ['lint', '--strict', CHART])).toContain('0 chart(s) failed')
  expect({ ...rendered(helm), helm: '' }).toEqual({ ...readRecord(), helm: '' })
}, 600_000)

test('Helm makes of the values for a cluster what is recorded', () => {
  if (helm === undefined) return
  const { values } = readValues()
  const sets = Object.entries(values).flatMap(([name, value]) => ['--set-json', `${name}=${JSON.stringify(value)}`])
  const text = run(helm, ['template', 'mcp-extauth', CHART, '--kube-version', 'v1.30.0', ...sets])
  const objects = parseAllDocuments(text).map((document) => document.toJS() as { kind: string; spec: object } | null)
  const made = Object.fromEntries(
    objects.flatMap((object) =>
      object?.kind === 'Deployment' || object?.kind === 'NetworkPolicy' ? [[object.kind, { spec: object.spec }]] : [],
    ),
  )
  if (isRecording) writeFileSync(VALUES_PATH, `${JSON.stringify({ values, made }, undefined, 2)}\n`)
  expect(made).toEqual(readValues().made)
})

test.each(RENDERINGS.map(([folder]) => folder))('what Helm makes is what kubectl makes of %s', (folder) => {
  expect(readRecord().objects[folder]).toEqual(objectsIn(run('kubectl', ['kustomize', path.join(root, folder)])))
})
