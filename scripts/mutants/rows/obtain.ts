import { within } from '../mutation.ts'

/** Guards of `src/obtain`. */
export default [
  ...within(
    'src/obtain/actor-token.ts',
    ['test/unit/obtain/actor-token.test.ts'],
    [
      [
        'callers’ bad tokens have an actor token fetched once a minute at most',
        'source.another(EXCHANGES,',
        'source.another(String(Math.random()),',
      ],
      [
        'the token of who acts, and what was got with it, go when a secret of either client changes',
        'const secrets = [...exchanging, ...(own.secrets ?? [])]',
        'const secrets = exchanging',
      ],
    ],
  ),
  ...within(
    'src/obtain/cached-own.ts',
    ['test/unit/obtain/client-credentials.test.ts'],
    [
      [
        'an actor token stays where there is no new one',
        '    } catch {\n      // The cache counts',
        '    } catch (error) {\n      if (error !== undefined) throw error\n      // The cache counts',
        ['test/unit/obtain/actor-token.test.ts'],
      ],
      [
        'a token of the proxy is for one configuration',
        '[scope.config, generation.configHash, generation.secrets]',
        '[generation.secrets]',
      ],
      [
        'a service token has no owner, and a caller’s purge does not remove it',
        "    subject: '',\n",
        "    subject: 'caller-1',\n",
      ],
    ],
  ),
  ...within(
    'src/obtain/cached.ts',
    ['test/unit/obtain/cached.test.ts'],
    [
      [
        'what was obtained with another secret has another key',
        'hashKey([scope.config, configHash, secrets, caller.issuer',
        'hashKey([scope.config, configHash, caller.issuer',
        ['test/unit/obtain/cache-key.test.ts'],
      ],
      [
        'a credential is for one issuer',
        'secrets, caller.issuer, caller.identity, ...plan.keyParts',
        'secrets, caller.identity, ...plan.keyParts',
      ],
      [
        'a credential is for one caller',
        'secrets, caller.issuer, caller.identity, ...plan.keyParts',
        'secrets, caller.issuer, ...plan.keyParts',
      ],
      [
        'an anonymous caller gets no credential of a caller',
        "if (caller.kind === 'anonymous') {",
        "if (caller.kind === 'anonymous' && config.type === 'none') {",
        [
          'test/unit/obtain/cached.test.ts',
          'test/unit/obtain/token-exchange-key.test.ts',
          'test/slow/obtain/recovery.test.ts',
          'test/slow/obtain/token-exchange-load.test.ts',
          'test/unit/obtain/token-exchange-request.test.ts',
          'test/unit/obtain/token-response.test.ts',
        ],
      ],
    ],
  ),
  ...within(
    'src/obtain/client-credentials.ts',
    ['test/unit/obtain/token-response.test.ts'],
    [
      [
        'what is refused to the proxy itself is not the caller’s fault',
        'context, OWN_GRANT)',
        "context, { ...OWN_GRANT, refused: () => 'invalid_token' })",
      ],
      [
        'an endpoint that fails is asked for our own token again at once',
        'nowMs: clock.now(), service }',
        'nowMs: clock.now() }',
      ],
      [
        'a token of our own is renewed as early as is said',
        'usedUntilMs(expiresAtMs, sentAtMs, spec.cacheSkew)',
        'usedUntilMs(expiresAtMs, sentAtMs, 0)',
        ['test/unit/obtain/client-credentials.test.ts'],
      ],
      [
        'a token of our own that was got with another secret is forgotten',
        '    secrets: client.secrets,\n',
        '',
        ['test/unit/obtain/client-credentials.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/obtain/cloud-sts/assume-role.ts',
    ['test/system/obtain/cloud-sts/sts-failures.test.ts'],
    [
      [
        'what STS may have said by mistake is asked again',
        'if (!isInvalidIdentityToken(error) || !hasTime) throw error',
        'if (hasTime || error !== undefined) throw error',
      ],
    ],
  ),
  ...within(
    'src/obtain/cloud-sts/decision-log.ts',
    ['test/unit/obtain/cloud-sts/attribute-decisions.test.ts'],
    [
      [
        'values of tags and policies are shown with claims only',
        'choice: attributes === undefined ? rest : { ...rest, attributes: withoutValues(attributes) },',
        'choice,',
      ],
    ],
  ),
  ...within(
    'src/obtain/cloud-sts/identity/ambient.ts',
    ['test/unit/obtain/cloud-sts/identity/ambient.test.ts'],
    [
      [
        'a named credential source that fails ends the chain',
        'if (named === true || name === answered || isFinal(error)) throw failureOf(error, name)',
        '',
      ],
      [
        'keys are visible ASCII',
        'if (!areUsable || Number.isNaN(expiresAtMs)) throw',
        'if (Number.isNaN(expiresAtMs)) throw',
        ['test/unit/obtain/cloud-sts/identity/metadata.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/obtain/cloud-sts/identity/credential-process.ts',
    ['test/unit/obtain/cloud-sts/identity/ambient.test.ts'],
    [
      [
        'a credential_process that hangs is killed with what it has started',
        "process.kill(-pid, 'SIGKILL')",
        "process.kill(pid, 'SIGKILL')",
      ],
    ],
  ),
  ...within(
    'src/obtain/cloud-sts/identity/identities.ts',
    ['test/system/e2e/reload-resources.test.ts'],
    [
      [
        'a hub holds the identity that it comes from, whichever configuration opened it',
        'ambientOf(uses, through.source)',
        'ambientOf(deps.identities, through.source)',
      ],
      [
        'an answer of a metadata service has a bound',
        '    maxBytes: MOST_METADATA_BYTES,\n',
        '    maxBytes: 2 ** 40,\n',
        ['test/unit/obtain/cloud-sts/identity/metadata.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/obtain/cloud-sts/identity/kept.ts',
    ['test/unit/obtain/cloud-sts/identity/kept.test.ts'],
    [
      [
        'an identity that is over signs nothing',
        'if (keys !== undefined && nowMs < keys.expiresAtMs) {',
        'if (keys !== undefined) {',
      ],
      [
        'keys that are over already are none',
        'if (!(fetched.expiresAtMs > nowMs))\n',
        'if (fetched.expiresAtMs === -1)\n',
      ],
      [
        'keys are renewed ahead of their end',
        'if (nowMs >= refreshAtMs && !isDuring(pause, nowMs)',
        'if (nowMs < 0 && !isDuring(pause, nowMs)',
      ],
      [
        'a failure is not asked for again while it is fresh',
        'if (flight === undefined && failure !== undefined && isDuring(pause, nowMs))\n',
        'if (flight === undefined && failure !== undefined && nowMs < 0)\n',
      ],
      ['who waits for keys waits for one fetch', 'flight ??= metrics', 'flight = metrics'],
      ['pauses after failures grow', 'pauseMs(failure, ++failuresInARow)', 'pauseMs(failure, 1)'],
      ['keys that are new are not refused for being old', 'if (isFirst && !mayRenew) return false', ''],
      [
        'keys that were replaced meanwhile are not fetched again',
        'if (keys !== undefined && keys.accessKeyId !== refused.accessKeyId) return true\n',
        '',
      ],
    ],
  ),
  ...within(
    'src/obtain/cloud-sts/identity/metadata.ts',
    ['test/unit/obtain/cloud-sts/identity/metadata.test.ts'],
    [
      [
        'the metadata service is asked in version 2 only',
        "if (!TOKEN.test(token)) throw new CredentialSourceError('it returned no valid token')",
        '',
      ],
      [
        'the token of a container goes over HTTP only next door',
        'if (url === undefined || !(isNear || ',
        "if (url === undefined || !(isNear || url.protocol === 'http:' || ",
      ],
    ],
  ),
  ...within(
    'src/obtain/cloud-sts/identity/profile.ts',
    ['test/unit/obtain/cloud-sts/identity/ambient.test.ts'],
    [
      [
        'half of a pair of keys in a profile is an error',
        'if ((id === undefined) !== (secret === undefined))\n',
        'if (false)\n',
      ],
      [
        'a profile does not use a metadata service implicitly',
        "if (place === 'Ec2InstanceMetadata' || place === 'EcsContainer')\n",
        "if (place === '')\n",
      ],
    ],
  ),
  ...within(
    'src/obtain/cloud-sts/key-parts.ts',
    ['test/unit/obtain/cloud-sts/race.test.ts'],
    [
      [
        'a credential is for what the claims of the token say',
        '.filter(([name]) => !VOLATILE.has(name))',
        ".filter(([name]) => name === 'aud')",
      ],
      [
        'tags, source identity and policies are in the key of a credential',
        'canonicalJson(attributes ?? {})',
        "''",
        ['test/slow/obtain/cloud-sts/attribute-keys.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/obtain/cloud-sts/role-mapper.ts',
    ['test/unit/obtain/cloud-sts/role-table.test.ts'],
    [
      [
        'a rule on a claim that the issuer left out denies',
        'if (leftOut !== undefined && !allowsOverage) {',
        'if (leftOut === null) {',
        ['test/unit/obtain/cloud-sts/trace.test.ts'],
      ],
      [
        'who can have no role by a template gets no other role',
        "if (outcome === 'matched') return session()",
        "if (outcome === 'matched') return session().refusal === undefined ? session() : undefined",
        ['test/unit/obtain/cloud-sts/role-template.test.ts'],
      ],
      [
        'a rule that costs too much gives no role, also by a later one',
        "if (outcome === 'limit') return { roleArn: undefined, by: undefined, refusal: 'rule_limit' }\n",
        '',
      ],
      [
        'a matcher that fails gives no role where that is wanted',
        "if (outcome === 'error' && denies) return",
        "if (outcome === 'error' && !denies) return",
      ],
      ['mappings are tried by priority', '(a.step.priority ?? Infinity) - (b.step.priority ?? Infinity) || ', ''],
      ['who has no role by a mapping has none without a fallback', "refusal: 'no_role' })", 'refusal: undefined })'],
    ],
  ),
  ...within(
    'src/obtain/cloud-sts/role-template.ts',
    ['test/unit/obtain/cloud-sts/role-template.test.ts'],
    [
      [
        'a claim can write no slash and no colon into a role',
        'const VALUE = /^[A-Za-z0-9_+=,.@-]{1,64}$/',
        'const VALUE = /^[A-Za-z0-9_+=,.@/:-]{1,64}$/',
      ],
      [
        'a role by template is in an account that is allowed',
        "!accounts.has(arn.split(':', 5)[4] ?? '')",
        'accounts.size === 0',
      ],
    ],
  ),
  ...within(
    'src/obtain/cloud-sts/session-attributes.ts',
    ['test/unit/obtain/cloud-sts/session-attributes.test.ts'],
    [
      ['a claim can not make a session policy wider', 'const WIDE = /[*?$\\p{C}]/u', 'const WIDE = /[\\p{C}]/u'],
      [
        'a missing claim drops no tag in silence',
        'else if (!(optional && value.isMissing))',
        'else if (!value.isMissing)',
      ],
      [
        'each role has the external id of its mapping',
        'externalId: mapping.externalId ?? externalId,',
        'externalId,',
        ['test/unit/obtain/cloud-sts/signed.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/obtain/cloud-sts/session-name.ts',
    ['test/unit/obtain/cloud-sts/session-name.test.ts'],
    [
      [
        'two claims that were changed have different session names',
        'JSON.stringify([issuer, identity, claim])',
        'JSON.stringify([issuer, identity])',
      ],
      [
        'two callers with the same changed claim have different session names',
        'JSON.stringify([issuer, identity, claim])',
        'JSON.stringify([issuer, claim])',
      ],
      ['a claim that looks derived is derived', "  if (LOOKS_DERIVED.test(legal)) changes.push('looks_derived')\n", ''],
      [
        'no two values of a claim make one session name',
        'JSON.stringify([issuer, identity, claim])',
        'JSON.stringify([issuer, identity])',
      ],
    ],
  ),
  ...within(
    'src/obtain/cloud-sts/sts-failure.ts',
    ['test/unit/obtain/cloud-sts/signed.test.ts'],
    [
      ['no text of STS is reported', 'hintOf(known, sdk.message)}`,', '` ${String(sdk.message)}`}`,'],
      [
        "an identity that STS refuses is ours, not the caller's",
        "  ExpiredToken: 'aws_identity_unavailable',\n",
        "  ExpiredToken: 'expired_token',\n",
      ],
    ],
  ),
  ...within(
    'src/obtain/id-jag.ts',
    ['test/unit/obtain/xaa-answers.test.ts'],
    [
      ['what the identity provider issued is an identity assertion', 'type === ID_JAG_TYPE', 'type !== undefined'],
      ['an assertion says that it is one', 'jwtTypeOf(typ) !== ID_JAG)', "jwtTypeOf(typ) === '')"],
      [
        'an assertion is for the target alone',
        "oneOf(payload['aud']) !== wanted.audience",
        "oneOf(payload['aud']) === undefined",
      ],
      [
        'an assertion is for our client at the target',
        "payload['client_id'] !== wanted.clientId",
        "payload['client_id'] === null",
      ],
      [
        'an assertion is for the resource that was asked for',
        "oneOf(payload['resource']) !== wanted.resource",
        "oneOf(payload['resource']) === null",
      ],
      [
        'an assertion that was rejected twice causes no login',
        "  return code === 'invalid_token' ? 'exchange_denied' : code\n",
        '  return code\n',
      ],
      [
        'a caller’s own token is shown only where it was made for our client',
        'clientId === undefined || !audiences.includes(clientId)',
        'clientId === undefined',
        ['test/unit/obtain/xaa.test.ts'],
      ],
      ['what comes with an assertion is no token for a header', "['N_A'], isIdJag", "['N_A', 'Bearer'], isIdJag"],
      ['an assertion is signed', "shape.kind !== 'jwt' || text.endsWith('.')", "shape.kind !== 'jwt'"],
      ['an assertion that is over is not shown', '!(exp * 1_000 > context.nowMs)', 'exp <= 0'],
      [
        'an assertion ends when it says, whatever is said of it',
        'Math.min(expiresAtMs, exp * 1_000)',
        'expiresAtMs',
        ['test/unit/obtain/xaa.test.ts'],
      ],
      [
        'an opaque token is no ID token',
        "  if (format !== 'jwt') throw notAnIdToken('it is opaque')\n",
        '',
        ['test/unit/obtain/xaa.test.ts'],
      ],
      [
        'an ID token says whose it is',
        "  if (subject === '') throw notAnIdToken('it has no sub')\n",
        '',
        ['test/unit/obtain/xaa.test.ts'],
      ],
      [
        'a token whose claims say that it is no ID token is none',
        "typ !== undefined && typ !== 'ID'",
        "typ === ''",
        ['test/unit/obtain/xaa.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/obtain/obo-refusals.ts',
    ['test/unit/obtain/obo-refusals.test.ts'],
    [
      ['claims of a challenge are a JSON object', ' && readJsonObject(Buffer.from(claims)) !== undefined', ''],
      ['an error of our own is not taken for a challenge to the caller', '!BEFORE_CLAIMS.has(known.code)', 'true'],
      [
        'a tenant that is busy says nothing else',
        "    if (busy === 'identity_provider_unavailable') return busy\n",
        '',
      ],
      [
        'who has no rights is not asked for again with the same token',
        "fault === 'caller_token' || fault === 'caller_rights'",
        "fault === 'caller_token'",
      ],
      [
        'a refused token is kept away from the tenant for ten minutes',
        'const REFUSED_MS = 10 * 60_000',
        'const REFUSED_MS = 60_000',
      ],
      ['claims of a challenge fit into a header', 'claims.length <= MAX_CLAIMS && ', ''],
      [
        'a challenge is for those who can meet it',
        "(fault === 'caller_token' ? { challenge: challengeOf(code, claims, asked) } : {})",
        '{ challenge: challengeOf(code, claims, asked) }',
      ],
    ],
  ),
  ...within(
    'src/obtain/obo.ts',
    ['test/unit/obtain/obo.test.ts'],
    [
      ['an application’s token is not used on behalf of a user', '      refuseApplication(caller.claims)\n', ''],
      [
        'a token got on behalf of a caller is for one token of the caller',
        'spec.tenantId, clientId, scope, caller.tokenDigest]',
        'spec.tenantId, clientId, scope]',
        ['test/unit/obtain/obo-refusals.test.ts'],
      ],
      [
        'a token got on behalf of one caller is given to no other',
        '[spec.tenantId, clientId, scope, caller.tokenDigest], notAfterMs: caller.expiresAtMs',
        '[spec.tenantId, clientId, scope], notAfterMs: caller.expiresAtMs',
        ['test/unit/obtain/isolation.test.ts'],
      ],
      [
        'a token got on behalf of a caller ends with the one that was shown',
        'scope, caller.tokenDigest], notAfterMs: caller.expiresAtMs',
        'scope, caller.tokenDigest], notAfterMs: undefined',
      ],
      [
        'a token got with that of an upstream ends with it',
        'Math.min(usedUntilMs(expiresAtMs, sentAtMs, spec.cacheSkew), shown.expiresAtMs)',
        'usedUntilMs(expiresAtMs, sentAtMs, spec.cacheSkew)',
        ['test/unit/obtain/obo-upstream.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/obtain/refused-by-token.ts',
    ['test/unit/cli/explain-effects.test.ts'],
    [
      [
        'what a type would refuse a token for is explained',
        "  if (auth.type === 'obo') refuseApplication(caller.claims)\n",
        '',
      ],
    ],
  ),
  ...within(
    'src/obtain/rejections.ts',
    ['test/unit/obtain/client-credentials.test.ts'],
    [
      [
        'one caller has no new token of the last minute replaced for all',
        'caller === undefined || caller !== refused.first',
        'caller !== ""',
      ],
      [
        'tokens that are refused again and again are fetched ever less often',
        'Math.min(LONGEST_PAUSE_MS, 2 * pauseMs)',
        'FIRST_PAUSE_MS',
      ],
      [
        'tokens that live for seconds are replaced as soon after each ordinary renewal',
        'if (obtainedAtMs > renewedAtMs) pauseMs = FIRST_PAUSE_MS',
        '',
      ],
    ],
  ),
  ...within(
    'src/obtain/token-client.ts',
    ['test/unit/obtain/client-auth.test.ts'],
    [
      [
        'metadata of an authorization server lead no secret to a metadata service',
        'isLearned ? learnedFrom(issuerUrl) : undefined',
        'undefined',
      ],
    ],
  ),
  ...within(
    'src/obtain/token-exchange-response.ts',
    ['test/unit/obtain/client-credentials.test.ts'],
    [
      [
        'a token is used however much earlier than it must be it is renewed',
        'const LEAST_USE = 0.1',
        'const LEAST_USE = 0',
      ],
    ],
  ),
  ...within(
    'src/obtain/token-exchange.ts',
    [
      'test/unit/obtain/cached.test.ts',
      'test/unit/obtain/token-exchange-key.test.ts',
      'test/slow/obtain/recovery.test.ts',
      'test/slow/obtain/token-exchange-load.test.ts',
      'test/unit/obtain/token-exchange-request.test.ts',
      'test/unit/obtain/token-response.test.ts',
    ],
    [
      [
        'an exchanged token belongs to one token of the caller',
        '[audience, scope, caller.tokenDigest]',
        '[audience, scope]',
        ['test/unit/obtain/token-exchange-refusal.test.ts', 'test/unit/obtain/token-exchange-request.test.ts'],
      ],
      [
        'who acts is said in each exchange',
        'const token = fetched ?? actorToken?.current()',
        'const token = actorToken?.current()',
        ['test/unit/obtain/actor-token.test.ts'],
      ],
      [
        'an exchanged token is for one token of the caller',
        '[audience, scope, caller.tokenDigest]',
        '[audience, scope]',
      ],
      [
        'an exchanged token ends with the token that was exchanged',
        'Math.min(exchanged.expiresAtMs, shown.expiresAtMs)',
        'exchanged.expiresAtMs',
      ],
    ],
  ),
  ...within(
    'src/obtain/subject-token-source.ts',
    ['test/unit/obtain/upstream-exchange.test.ts'],
    [
      [
        'a rejected upstream token is evaluated by its own age',
        'issuedAtMs: jwtIssuedMs(token.reveal())',
        'issuedAtMs: token.length === 0 ? jwtIssuedMs(token.reveal()) : undefined',
      ],
      [
        'a login that proves too little is not renewed in silence',
        "new Set(['interaction_required', ",
        'new Set([',
        ['test/unit/obtain/obo-upstream.test.ts'],
      ],
      [
        'a session that needs step-up is not refreshed, and challenged',
        ", 'insufficient_user_authentication'])",
        '])',
        ['test/unit/obtain/xaa-upstream.test.ts'],
      ],
      [
        'an upstream token requires a login',
        'if (holder === undefined) return true',
        'return true',
        ['test/unit/obtain/upstream-without-login.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/obtain/xaa.ts',
    ['test/unit/obtain/xaa.test.ts'],
    [
      [
        'an access token is not shown as an ID token',
        '        if (subject.keyParts(caller).length === 0) checkIdTokenHeader(token)\n',
        '',
      ],
      [
        'what was got with the secret of one server is dropped with that of the other',
        'secrets: [...clients.idp.secrets, ...clients.target.secrets],',
        'secrets: clients.idp.secrets,',
      ],
      [
        'an assertion’s token is used for no other caller',
        '[server, caller.tokenDigest]',
        '[server]',
        ['test/unit/obtain/isolation.test.ts'],
      ],
      [
        'an assertion is no token for the backend',
        '[server, caller.tokenDigest]',
        '[caller.tokenDigest]',
        ['test/unit/obtain/isolation.test.ts'],
      ],
      [
        'an assertion is not shown in its last seconds',
        'Math.min(expiresAtMs - marginMs, shown.expiresAtMs)',
        'Math.min(expiresAtMs, shown.expiresAtMs)',
      ],
      [
        'an assertion ends with the ID token that it was given for',
        'Math.min(expiresAtMs - marginMs, shown.expiresAtMs)',
        'expiresAtMs - marginMs',
        ['test/unit/obtain/xaa-upstream.test.ts'],
      ],
      [
        'only a rejected assertion is requested again',
        "response.status === 400 && errorOf(response) === 'invalid_grant'",
        'response.status >= 400',
      ],
      [
        'an ID token that was refused is not shown again at once',
        'isKeyedByToken: auth.upstream === undefined,',
        'isKeyedByToken: false,',
      ],
    ],
  ),
]
