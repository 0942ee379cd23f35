import { within } from '../mutation.ts'

/** Guards of `src/load`. */
export default [
  ...within(
    'src/load/documents/config-map.ts',
    ['test/slow/load/documents/bombs.test.ts'],
    [
      [
        'what is too much in one text of an object costs no reading of the texts after it',
        'if (isNamed && isExhausted(budget)) break',
        '',
      ],
    ],
  ),
  ...within(
    'src/load/documents/parse-documents.ts',
    ['test/unit/load/documents/client-rules.test.ts'],
    [
      [
        'what a manifest of the other group leaves out is off as it is there',
        'classified.isForeign ? withForeignDefaults(value, classified.kind) : value,',
        'classified.isForeign ? value : value,',
      ],
    ],
  ),
  ...within(
    'src/load/routes/resolve-auth-server.ts',
    ['test/unit/load/routes/upstream-use.test.ts'],
    [
      [
        'and no other route sends them',
        'if (disableUpstreamTokenInjection === true)',
        "if (disableUpstreamTokenInjection === true && kind === 'id_token')",
      ],
    ],
  ),
  ...within(
    'src/load/routes/resolve-auth.ts',
    ['test/unit/load/routes/upstream-use.test.ts'],
    [
      [
        'upstream tokens stay here where the configuration says so',
        "if (disableUpstreamTokenInjection === true) return { type: 'unauthenticated', spec: {} }",
        '',
      ],
    ],
  ),
  ...within(
    'src/load/routes/resolve-manifest-callers.ts',
    ['test/unit/load/workloads/oidc-config-refs.test.ts'],
    [
      [
        'an unusable callers setting accepts no caller',
        "    problems.push(manifest.problem([...path, 'name'], unresolvedReference(declared, { kind, namespace, name })))\n",
        '    void unresolvedReference\n',
      ],
    ],
  ),
  ...within(
    'src/load/routes/route-rules.ts',
    ['test/unit/load/routes/header-forward.test.ts'],
    [
      [
        'a header of a type is set only by it, in any spelling',
        '.filter((name) => own.has(plainHeaderName(name)))',
        '.filter((name) => own.has(name))',
      ],
      [
        'forwarded headers are a credential to the rules about anonymous callers and open paths',
        'headersSetBy(auth).length > 0 || forwardedBy(draft).length > 0',
        'headersSetBy(auth).length > 0',
      ],
    ],
  ),
]
