import { readFileSync } from 'node:fs'
import path from 'node:path'
import ts from 'typescript-api'
import { type Mutation, mutate } from '../mutation.ts'

/** Why what a mutation that fits makes is no program: a test that fails for that has noticed nothing. */
export function unparsed(root: string, mutation: Mutation): string | undefined {
  const text = mutate(mutation, readFileSync(path.join(root, mutation.file), 'utf8'))
  const { diagnostics = [] } = ts.transpileModule(text, { reportDiagnostics: true })
  return diagnostics.length > 0 ? 'what it makes does not parse' : undefined
}
