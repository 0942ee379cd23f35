import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { KubeObject } from '../../../src/kube/index.ts'
import type { Spelling } from '../../support/resources/verdicts/spellings.ts'
import { judge } from './crdcheck.ts'

/** Parses texts with kubectl, without a server; null if kubectl or the API server's code rejects one. */
export function readByKubectl(spellings: readonly Spelling[]): Map<Spelling, KubeObject | null> {
  const directory = mkdtempSync(path.join(tmpdir(), 'extauth-spellings-'))
  try {
    const objects = spellings.map(({ text }) => {
      const file = path.join(directory, 'text.yaml')
      writeFileSync(file, text)
      // A label change prints the whole object as it was parsed.
      const { status, stdout } = spawnSync('kubectl', ['label', '--local', '-f', file, '-o', 'json', 'judged-'], {
        encoding: 'utf8',
      })
      return status === 0 ? (JSON.parse(stdout) as KubeObject) : null
    })
    const verdicts = judge(
      objects.map((object) => ({ kind: 'MCPExternalAuthConfig', what: '', object: { ...object } })),
    )
    return new Map(spellings.map((one, index) => [one, verdicts[index]?.ok === true ? (objects[index] ?? null) : null]))
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}
