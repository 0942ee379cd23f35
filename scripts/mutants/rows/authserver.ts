import { within } from '../mutation.ts'

/** Guards of `src/authserver`. */
export default [
  ...within(
    'src/authserver/addresses.ts',
    ['test/unit/authserver/identity.test.ts'],
    [
      [
        'who logs in is who the primary upstream says',
        'const chain = upstreamsInOrder(spec)',
        'const chain = spec.upstreamProviders',
      ],
    ],
  ),
  ...within(
    'src/authserver/clients/assertion.ts',
    ['test/unit/authserver/client-assertions.test.ts'],
    [
      ['an assertion is the client’s own', 'if (iss !== client.id) throw refused(', "if (iss === '') throw refused("],
      ['an assertion is signed by its client', "signature)) !== 'good')", "signature)) === 'unknown_key')"],
      [
        'a key without a name counts where it has signed',
        "if (one.check === 'good') return one.check",
        "if (one.check !== 'unknown_key') return 'good'",
        ['test/unit/authserver/grants/client-credentials.test.ts'],
      ],
      ['an assertion counts once', 'if (!(await store.putIfAbsent(', 'if ((await store.putIfAbsent('],
      [
        'an assertion lives an hour at most',
        'return exp > nowSeconds + MOST_ASSERTION_SECONDS ?',
        'return exp === 0 ?',
      ],
      [
        'an assertion is of the algorithm that its client registered',
        'assertionAlgorithm === undefined ? SIGNATURE_ALGORITHMS : [assertionAlgorithm]',
        'SIGNATURE_ALGORITHMS',
      ],
      ['an assertion ends', "if (nowSeconds - EXPIRED_SECONDS >= exp) return 'the assertion has expired'", ''],
      [
        'an assertion is not valid before its time',
        "if (Math.max(nbf, iat) > nowSeconds + EARLY_SECONDS) return 'the assertion is not valid yet'",
        '',
      ],
      [
        'it is recorded for as long as it is valid',
        '(MOST_ASSERTION_SECONDS + EXPIRED_SECONDS) * 1_000',
        '(MOST_ASSERTION_SECONDS / 60 + EXPIRED_SECONDS) * 1_000',
      ],
      [
        'an assertion is for this server alone',
        "if (named.length === 0 || !named.every((one) => typeof one === 'string' && audiences.has(one)))",
        "if (!named.some((one) => typeof one === 'string' && audiences.has(one)))",
      ],
    ],
  ),
  ...within(
    'src/authserver/clients/authentication.ts',
    ['test/unit/authserver/token-parameters.test.ts'],
    [
      [
        'another scheme than Basic is a client that is not let in',
        'if (!/^basic(?: |$)/i.test(authorization))',
        "if (authorization === '')",
      ],
      [
        'a client with a secret shows it',
        'if (!isSecretOf(client, shown.secret)) throw',
        "if (shown.secret === '') throw",
      ],
    ],
  ),
  ...within(
    'src/authserver/clients/client.ts',
    ['test/unit/authserver/client-rules.test.ts'],
    [
      [
        'no document is fetched where clients are not known by theirs',
        'cimd?.enabled !== false',
        'cimd?.enabled !== undefined || cimd === undefined',
      ],
    ],
  ),
  ...within(
    'src/authserver/clients/directory.ts',
    ['test/slow/authserver/registered-clients.test.ts'],
    [
      ['a use that can not be noted costs no login', 'if (error instanceof StoreError) return\n', ''],
      [
        'a registration holds 8 KiB at most',
        'if (record.length > CLIENT_BYTES)',
        'if (record.length > 8 * CLIENT_BYTES)',
      ],
      [
        'a foreign client record is ignored',
        'if (stored === undefined || opened === undefined) return undefined',
        'if (stored === undefined) return undefined\n      if (opened === undefined) return readClient(stored.value)',
        ['test/unit/authserver/put-back.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/authserver/clients/documents.ts',
    ['test/unit/authserver/strict-clients.test.ts'],
    [
      ['nor a secret', 'document.client_secret ?? document', 'document'],
      ['nor the end of one', ' ?? document.client_secret_expires_at', ''],
      ['a metadata document has one name', 'segments.every((segment) => !', 'segments.some((segment) => !'],
    ],
  ),
  ...within(
    'src/authserver/clients/fetched.ts',
    ['test/unit/authserver/client-assertions.test.ts'],
    [
      [
        'what a client publishes is kept as its headers say',
        'lookedAtMs + lifetimeOf(response.headers, lookedAtMs, fallbackMs)',
        'lookedAtMs + lifetimeOf({}, lookedAtMs, fallbackMs)',
        ['test/unit/authserver/client-rules.test.ts'],
      ],
      [
        'keys of a client stay in use if a refresh fails',
        'else kept.set(url, { ...known, lookedAtMs: clock.now() }, known.untilMs)',
        'else kept.delete(url)',
      ],
      [
        'an unknown key causes a fetch of its client’s keys every 15 s at most',
        'isDuring({ sinceMs, untilMs: sinceMs + REFUSED_MS }, clock.now()) ? old : flightTo(url)',
        'sinceMs < 0 ? old : flightTo(url)',
      ],
      [
        'a document is fetched in the queue of its requester',
        '        onBehalfOf: clientNetwork.onBehalf(url),\n',
        '',
        ['test/unit/authserver/documents.test.ts'],
      ],
      [
        'and no other client waits for it',
        'hashKey([clientNetwork.network, url])',
        'url',
        ['test/unit/authserver/documents.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/authserver/clients/metadata.ts',
    ['test/unit/authserver/strict-clients.test.ts'],
    [
      [
        'a metadata document has no private-use redirect',
        "kind === 'private' && from === 'document'",
        "kind === 'private' && uris.length === 0",
      ],
      [
        'nor a method with a shared secret',
        "from === 'document' && known.startsWith('client_secret')",
        "from === 'document' && known.startsWith('secret')",
      ],
      [
        'only public clients register where the configuration says so',
        '    if (!capabilities.allowsConfidential)\n',
        "    if (!capabilities.allowsConfidential && method === 'client_secret_basic')\n",
        ['test/unit/authserver/client-rules.test.ts'],
      ],
      [
        'a client that gets a secret unasked is on no device',
        'if (redirectUris.some(isOnOwnDevice))',
        'if (redirectUris.every(isOnOwnDevice))',
        ['test/unit/authserver/client-rules.test.ts'],
      ],
      [
        'who registered itself gets no token for itself',
        "asked.includes(type) && type !== 'client_credentials')",
        'asked.includes(type))',
        ['test/unit/authserver/grants/client-credentials.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/authserver/browser-endpoint.ts',
    ['test/unit/authserver/guards.test.ts'],
    [
      ['pages of a login have a rate', 'limit(request.client.address)\n', '\n'],
      ['a form is a form', "if (type !== 'application/x-www-form-urlencoded')", "if (type === '')"],
    ],
  ),
  ...within(
    'src/authserver/endpoints.ts',
    ['test/unit/authserver/guards.test.ts'],
    [
      [
        'a callback takes forms of other sites only where an upstream posts them',
        'takesForeignForms ? { ...withForm, takesForeignForms } : undefined',
        '{ ...withForm, takesForeignForms: true }',
        ['test/system/dialects/logins.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/authserver/grants/assertion.ts',
    ['test/unit/authserver/grants/id-jag-refused.test.ts'],
    [
      ['an assertion that ended is not taken', 'if (now - EXPIRED_SECONDS >= exp)', 'if (exp <= 0)'],
      ['an assertion ends soon', 'if (exp > now + mostMs / 1_000 + EARLY_SECONDS)', 'if (exp === Infinity)'],
      [
        'an assertion with a further audience is rejected',
        'Array.isArray(aud) && aud.length === 1',
        'Array.isArray(aud)',
      ],
    ],
  ),
  ...within(
    'src/authserver/grants/identity-assertions.ts',
    ['test/unit/authserver/grants/id-jag-refused.test.ts'],
    [
      ['an identity assertion says that it is one', 'if (type !== ID_JAG) throw', "if (type === 'none') throw"],
      ['an identity assertion is shown by a confidential client', '      checkClient(client)\n', ''],
      ['an identity assertion is for us alone', '      checkAudience(claims, options.issuer)\n', ''],
      [
        'an identity assertion is shown by the client that it was made for',
        '      checkClientId(claims.client_id, client, known.issuer)\n',
        '',
      ],
      [
        'an identity assertion says when it was made',
        "      if (claims.iat === undefined) throw new RefusedAssertion('iat is missing')\n",
        '',
      ],
      ['an identity assertion has an identifier', '      checkIdentifier(claims)\n', ''],
      ['an identity assertion that is bound to a key is not good without it', '      checkUnbound(claims)\n', ''],
      ['an identity assertion is signed by its issuer', '      await checkSigned(assertion, known.keys.keys)\n', ''],
      [
        'an identity assertion that ended while keys were fetched has ended',
        '      // The assertion may have expired while keys were fetched.\n      checkTimes(claims, clock.now(), MOST_AHEAD_MS)\n',
        '',
      ],
      ['a request names no other resource than its assertion', 'if (asked.url !== named.url)', "if (asked.url === '')"],
    ],
  ),
  ...within(
    'src/authserver/grants/targets.ts',
    ['test/unit/authserver/grants/client-credentials.test.ts'],
    [
      [
        'scopes are those that client, assertion and resource have',
        'scopes.includes(scope) && limits.every((limit) => limit === undefined || limit.includes(scope))',
        'scopes.includes(scope) && limits.length > 0',
      ],
      [
        'a client gets tokens for its resources',
        'if (resource === undefined || !takesIn(bounds, resource, names))',
        'if (resource === undefined)',
      ],
    ],
  ),
  ...within(
    'src/authserver/grants/workloads.ts',
    ['test/unit/authserver/grants/workload-refused.test.ts'],
    [
      ['a token of a workload is none of another kind', '!TYPES.has(type)', "type === 'oauth-id-jag+jwt'"],
      ['a token of a person is none of a workload', 'if (person !== undefined) throw', "if (person === 'none') throw"],
      ['a token of a workload is for us alone', 'audiences.has(audience)', 'audiences.size > 0'],
      [
        'a token of a workload is one that an entry is for',
        "if (result.outcome === 'matched') return one",
        'return one',
      ],
      [
        'who makes an expression cost too much gets nothing',
        "if (result.outcome === 'limit')\n",
        "if (result.outcome === 'error' && failed.length > 99)\n",
      ],
      [
        'a token of a workload has not ended, nor ends later than it may',
        '      checkTimes(claims, clock.now(), mostMs)\n      checkLife(claims, mostMs)\n      await checkSigned(assertion, keys.keys)\n      // The token may have expired while keys were fetched.\n      checkTimes(claims, clock.now(), mostMs)\n',
        '      checkLife(claims, mostMs)\n      await checkSigned(assertion, keys.keys)\n',
      ],
      ['a token of a workload was made for no longer than its entry says', '      checkLife(claims, mostMs)\n', ''],
      ['a token of a workload that is bound to a key is not good without it', '      checkUnbound(claims)\n', ''],
      [
        'a token of a workload is signed by its issuer',
        '      await checkSigned(assertion, keys.keys)\n',
        '      await keys.keys.keys()\n',
      ],
      ['a workload gets the scopes of its entry, and none by default', '[entry.scopes]', '[undefined]'],
      [
        'a workload gets tokens for the resources of its entry',
        'targetOf(parameters.resource, resources, entry)',
        'targetOf(parameters.resource, resources, { resources: undefined })',
      ],
      [
        'an assertion that counts once is not taken again',
        "if (!isNew) throw new RefusedAssertion('it was used before')",
        'void isNew',
        ['test/unit/authserver/grants/trusted-issuers.test.ts'],
      ],
      [
        'no claims of a workload are copied',
        'claims: undefined,',
        'claims,',
        ['test/unit/authserver/grants/workload.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/authserver/login/authorize.ts',
    ['test/unit/authserver/leaving.test.ts'],
    [
      [
        'no user is redirected to a client without consent',
        'if (isExpected) return',
        "if (isExpected || url !== '') return",
      ],
    ],
  ),
  ...within(
    'src/authserver/login/browser.ts',
    ['test/unit/authserver/https.test.ts'],
    [
      ['cookies of https are Secure', "isSecure(origin) ? '; Secure' : ''", "''"],
      ['and of this host alone', '(isSecure(origin) ? `__Host-${name}` : name)', 'name'],
    ],
  ),
  ...within(
    'src/authserver/login/consent.ts',
    ['test/unit/authserver/binding.test.ts'],
    [['a form of another browser or site is rejected', '|| !isFlowOf(flow, ticket.flow.digest))', ')']],
  ),
  ...within(
    'src/authserver/login/upstream-redirects.ts',
    ['test/unit/authserver/guards.test.ts'],
    [
      [
        'an answer at the address of another upstream is refused',
        'if (callbacks.every(({ url }) => url !== leg.redirectUri))',
        'if (callbacks.length === 0)',
      ],
    ],
  ),
  ...within(
    'src/authserver/login/login-request.ts',
    ['test/unit/authserver/authorize-parameters.test.ts'],
    [
      [
        'PKCE is S256 and nothing else',
        "if (one(parameters, 'code_challenge_method') !== 'S256')",
        "if (one(parameters, 'code_challenge_method') === '')",
      ],
      [
        'a client logs people in by a grant that it registered',
        "if (!client.grantTypes.includes('authorization_code'))",
        'if (client.grantTypes.length === 0)',
      ],
      ['an empty resource is none', "parameters.getAll('resource').filter(Boolean)", "parameters.getAll('resource')"],
      [
        'no scope is granted that the resource has not',
        'asked?.filter((name) => resource.scopes.includes(name) || name === OFFLINE_ACCESS) ?? [',
        'asked ?? [',
        ['test/unit/authserver/guards.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/authserver/login/pending.ts',
    ['test/unit/authserver/guards.test.ts'],
    [
      [
        'the record of a login is found with its cookie',
        '`${flow.id}.${flow.secret}.${token}`',
        '`${flow.id}.${token}`',
      ],
      ['and with its state', '`${flow.id}.${flow.secret}.${token}`', '`${flow.id}.${flow.secret}`'],
    ],
  ),
  ...within(
    'src/authserver/login/stored-consents.ts',
    ['test/unit/authserver/leaving.test.ts'],
    [
      [
        'a client that was let in is known by its redirect address too',
        'shortHash(hashKey([client.id, portless(redirectUri) ?? redirectUri])).slice',
        'shortHash(hashKey([client.id])).slice',
      ],
      [
        'consent is for one redirect address',
        'hashKey([client.id, portless(redirectUri) ?? redirectUri, scope.',
        'hashKey([client.id, scope.',
        ['test/unit/authserver/consent.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/authserver/own-issuer.ts',
    ['test/system/e2e/authserver/own-tokens.test.ts'],
    [
      [
        'an own token has a session',
        "!isWithoutLogin(claims) && (typeof claims.tsid !== 'string' || sessions.isEnded(claims.tsid))",
        "typeof claims.tsid === 'string' && sessions.isEnded(claims.tsid)",
      ],
      [
        'a token from before the start has a session that is known',
        "typeof tsid === 'string' && (await sessions.isKept(tsid))",
        "typeof tsid === 'string'",
        ['test/slow/e2e/authserver/revoked.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/authserver/pages/html.ts',
    ['test/unit/authserver/consent.test.ts'],
    [['marks of a name are not painted over other lines', "    .replace(STACKED, '$1\\u{FFFD}')\n", '']],
  ),
  ...within(
    'src/authserver/pages/layout.ts',
    ['test/slow/authserver/chromium/pages.test.ts'],
    [['a name has a place of its own', 'max-height:4.5rem;overflow:hidden auto', '']],
  ),
  ...within(
    'src/authserver/server.ts',
    ['test/unit/examine/check/upstream.test.ts'],
    [['logins fail while the token for an upstream is missing', ', ...tokensOfUpstreams(spec, deps)]', ']']],
  ),
  ...within(
    'src/authserver/sessions/claims-requests.ts',
    ['test/unit/authserver/step-up.test.ts'],
    [
      [
        'what a service wants of a login is asked of that user alone',
        'JSON.stringify([provider, user])',
        'JSON.stringify([provider])',
      ],
    ],
  ),
  ...within(
    'src/authserver/sessions/ended.ts',
    ['test/unit/authserver/sessions/ended.test.ts'],
    [
      [
        'a replica without the list of revoked sessions accepts no caller',
        'if (!freshness.isFresh)\n',
        'if (isClosed)\n',
      ],
      [
        'sessions that were ended are written again by who knows of them',
        'if (message === JOINED) restoring()',
        'if (message === JOINED) return',
        ['test/unit/authserver/put-back.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/authserver/sessions/refresh.ts',
    ['test/slow/authserver/sessions/refresh.test.ts'],
    [
      ['who lost the lock sends no refresh token', 'if (!lock.isHeld)', 'if (lock.fence < 0)'],
      [
        'who comes late takes what the next one has stored',
        'if (there.generation !== from.generation) return loaded.record',
        '',
      ],
      ['a lock of a dead holder blocks no caller', 'const LOCK_WAIT_MS = 2_000', 'const LOCK_WAIT_MS = 20_000'],
    ],
  ),
  ...within(
    'src/authserver/sessions/renewal.ts',
    ['test/unit/authserver/refresh.test.ts'],
    [
      [
        'a refused refresh that may be a mistake ends no session',
        "if (failure.code === 'no_session' && !mayHeal(failure)) return",
        "if (failure.code === 'no_session') return",
      ],
    ],
  ),
  ...within(
    'src/authserver/sessions/sessions.ts',
    ['test/unit/authserver/refresh.test.ts'],
    [
      [
        'claims are renewed at each refresh',
        'if (held.refreshToken === undefined) return { claims }',
        'if (!isDueForClaims(held, loaded.record, clock.now())) return { claims }',
      ],
      [
        'claims of expired tokens are not used',
        'if (isDueForClaims(held, loaded.record, clock.now())) throw error',
        '',
      ],
    ],
  ),
  ...within(
    'src/authserver/sessions/token-sessions.ts',
    ['test/unit/authserver/refresh.test.ts'],
    [
      [
        'a login that is revoked here is revoked at its upstream',
        'if (loaded !== undefined) revocation = revocations.begin(loaded.record)',
        '',
      ],
    ],
  ),
  ...within(
    'src/authserver/sessions/caller-tokens.ts',
    ['test/unit/authserver/sessions/use.test.ts'],
    [
      [
        'a session belongs to one client',
        "if (session.subject === subject && session.clientId === claims['client_id']) return",
        'if (session.subject === subject) return',
      ],
    ],
  ),
  ...within(
    'src/authserver/sessions/token-use.ts',
    ['test/unit/authserver/sessions/refused.test.ts'],
    [
      [
        'a token that a backend rejected is not returned while it is refreshed',
        'if (clock.now() < token.freshUntilMs && refused === undefined)',
        'if (clock.now() < token.freshUntilMs)',
      ],
      [
        'who read it before goes on with the next one',
        '(before.isFinal || !before.token.equals(refused.token))',
        'true',
      ],
    ],
  ),
  ...within(
    'src/authserver/token-endpoint.ts',
    ['test/unit/authserver/grants/workload-refused.test.ts'],
    [
      [
        'no client revokes the session of another',
        'if (family !== undefined && family.clientId === client.id)',
        'if (family !== undefined)',
        ['test/unit/authserver/refresh.test.ts'],
      ],
      [
        'an identity assertion is shown by a client that we know',
        "isAlone && !isIdentityAssertion(assertion ?? '')",
        'isAlone',
      ],
      [
        'a client that is shown is checked, whatever the assertion',
        'authorization === undefined && secret === undefined && shown === undefined',
        "secret !== 'none'",
      ],
    ],
  ),
  ...within(
    'src/authserver/tokens/claims.ts',
    ['test/unit/authserver/guards.test.ts'],
    [['what is ours to say is taken from no upstream', '.filter((name) => !RESERVED.has(name))', '']],
  ),
  ...within(
    'src/authserver/tokens/codes.ts',
    ['test/unit/authserver/codes.test.ts'],
    [
      [
        'a code is redeemed once',
        'const isOurs = await store.compareAndSet(key, version, records.write(key, traceOf(grant, false)), lifespanMs)',
        'await store.put(key, records.write(key, traceOf(grant, false)), lifespanMs)\n      const isOurs = version !== ""',
      ],
      [
        'tokens are given out though it can not be noted that they were made',
        'if (!(error instanceof StoreError)) throw error',
        'throw error',
      ],
      [
        'a used code stays used when its record is restored',
        'record.isSpent || used.peek(key) !== undefined',
        'record.isSpent',
        ['test/unit/authserver/put-back.test.ts'],
      ],
      [
        'other replicas know of it',
        'store.publish(CHANNEL, isRedeemed ? `${REDEEMED}${key}` : key)',
        'Promise.resolve()',
        ['test/unit/authserver/put-back.test.ts'],
      ],
    ],
  ),
  ...within(
    'src/authserver/tokens/families.ts',
    ['test/unit/authserver/put-back.test.ts'],
    [
      [
        'the previous refresh token is valid for 30 s',
        'isPrevious && nowMs <= record.rotatedAtMs + GRACE_MS',
        'isPrevious',
        ['test/unit/authserver/refresh.test.ts'],
      ],
      [
        'a rotated refresh token stays rejected when its record is restored',
        "if (isPutBack(record)) return 'stale'",
        '',
      ],
      ['every replica hears of rotations', 'remember(tsid, Number(rotations))', ''],
    ],
  ),
  ...within(
    'src/authserver/tokens/subject.ts',
    ['test/unit/authserver/guards.test.ts'],
    [['users of one name at two providers are two', 'of [identityProvider, subject])', 'of [subject])']],
  ),
  ...within(
    'src/authserver/tokens/token-service.ts',
    ['test/unit/authserver/redeem.test.ts', 'test/unit/authserver/refresh.test.ts'],
    [
      [
        'a code is of its client',
        'if (found === undefined || found.grant.clientId !== client.id)',
        'if (found === undefined)',
      ],
      ['the redirect URI is that of the request', 'checkRedirectUri(parameters.redirect_uri, grant)\n', ''],
      ['the verifier is checked', '    checkVerifier(verifier, grant.challenge)\n', ''],
      [
        'the verifier is that of the challenge',
        'if (computed.length !== challenge.length || !timingSafeEqual(Buffer.from(computed), Buffer.from(challenge)))',
        'if (computed.length !== challenge.length)',
      ],
      ['a verifier is long enough', 'if (!VERIFIER.test(verifier))', "if (verifier === '')"],
      [
        'a code that comes again after its tokens ends the login',
        "if (found.isRedeemed) return replayed('code', found.grant.tsid, client)",
        '',
      ],
      [
        'a resource is not widened',
        'checkResource(parameters.resource, grant.resource, resources)\n    const scope = narrowed(parameters.scope, grant)',
        'const scope = narrowed(parameters.scope, grant)',
      ],
      ['nor at a refresh', 'checkResource(parameters.resource, family.resource, resources)\n', ''],
      [
        'scopes are not widened',
        'if (asked.some((one) => !granted.includes(one) && !notGranted.includes(one)))',
        'if (asked.length > 99)',
      ],
      [
        'a refresh token of another client ends the login',
        "if (standing === 'stale' || family.clientId !== client.id) return",
        "if (standing === 'stale') return",
      ],
      [
        'a refresh token that is used again ends the login',
        "if (standing === 'stale' || family.clientId !== client.id) return",
        'if (family.clientId !== client.id) return',
      ],
      [
        'a token ends with its family',
        'Math.max(1_000, Math.min(lifespans.accessMs, grant.endsAtMs - clock.now()))',
        'lifespans.accessMs',
      ],
    ],
  ),
  ...within(
    'src/authserver/upstream-registrations.ts',
    ['test/unit/authserver/upstream-registration.test.ts'],
    [
      [
        'what was registered at an upstream is sealed in the store',
        'await store.put(key, seal.seal(key, made), KEPT_MS)',
        'await store.put(key, made, KEPT_MS)',
      ],
      ['one replica registers at a time', '          if (again !== undefined && isUsable(again)) return again\n', ''],
    ],
  ),
]
