import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { API_VERSIONS, NEWEST_VERSION } from '../../../src/load/index.ts'
import { type CrdKind, CRD_KINDS, customResourceDefinition } from '../../../src/load/publish/index.ts'
import type { JudgedObject } from '../../support/load/publish/verdicts/objects.ts'
import { CRDCHECK, findProgram } from './binary.ts'

export interface Verdict {
  readonly ok: boolean
  readonly errors: readonly string[] | null
}

/** Returns the verdicts of the API server's own code, in the order of the objects. Throws for an invalid definition. */
export function judge(objects: readonly JudgedObject[]): Verdict[] {
  const binary = findProgram(CRDCHECK)
  if (binary === undefined) throw new Error('no crdcheck')
  const directory = mkdtempSync(path.join(tmpdir(), 'extauth-crds-'))
  try {
    const verdicts = new Map<JudgedObject, Verdict>()
    for (const kind of CRD_KINDS) {
      for (const version of API_VERSIONS) {
        const file = path.join(directory, `${kind}.${version}.yaml`)
        writeFileSync(file, JSON.stringify(definitionOf(kind, version)))
        const own = objects.filter((one) => one.kind === kind && versionOf(one) === version)
        const input = own.map(({ object }) => `${JSON.stringify(object)}\n`).join('')
        const lines = execFileSync(binary, [file], { input, encoding: 'utf8', maxBuffer: 256 * 1024 * 1024 })
        for (const [index, line] of lines.trim().split('\n').entries()) {
          const one = own[index]
          if (one !== undefined) verdicts.set(one, JSON.parse(line) as Verdict)
        }
      }
    }
    return objects.map((one) => verdicts.get(one) ?? { ok: false, errors: ['not evaluated'] })
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

/** Objects with another version are validated by the older one. */
const versionOf = ({ object }: JudgedObject): string =>
  object['apiVersion'] === `extauth.dev/${NEWEST_VERSION}` ? NEWEST_VERSION : API_VERSIONS[0]

/** The definition with this version first, which `crdcheck` uses. */
function definitionOf(kind: CrdKind, version: string): object {
  const definition = customResourceDefinition('extauth.dev', kind)
  const spec = definition['spec'] as { readonly versions: readonly { readonly name: string }[] }
  const versions = spec.versions.toSorted((a, b) => Number(b.name === version) - Number(a.name === version))
  return { ...definition, spec: { ...spec, versions } }
}
