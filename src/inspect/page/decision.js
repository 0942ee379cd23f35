import { distanceOf, durationOf, html, Text } from './html.js'

const Fact = ({ name, children }) =>
  html`<div>
    <dt>${name}</dt>
    <dd>${children}</dd>
  </div>`

/** The authenticated caller. */
export function CallerPart({ caller }) {
  if (caller === undefined)
    return html`<section class="part" aria-label="Caller">
      <h3>Caller</h3>
      <p class="hint">Rejected before authentication.</p>
    </section>`
  if (caller.kind === 'anonymous')
    return html`<section class="part" aria-label="Caller">
      <h3>Caller</h3>
      <p>Anonymous: the route requires no token.</p>
    </section>`
  return html`<section class="part" aria-label="Caller">
    <h3>Caller</h3>
    <dl>
      <${Fact} name="Provider"><${Text} of=${caller.provider} /><//>
      <${Fact} name="Issuer"><${Text} of=${caller.issuer} /><//>
      <${Fact} name="Token">${caller.format === 'jwt' ? 'JWT' : 'opaque'}<//>
      <${Fact} name="Expires">${caller.expiresAtMs ? distanceOf(caller.expiresAtMs) : 'not specified'}<//>
      <${Fact} name="Hash, as in the log"><code>${caller.hash}</code><//>
      ${
        caller.subject === undefined
          ? html`<${Fact} name="Subject, claims"><span class="hint">shown with --show-claims</span><//>`
          : html`<${Fact} name="Subject"><${Text} of=${caller.subject} /><//>`
      }
    </dl>
    ${
      caller.claims
        ? html`<details>
            <summary>Claims</summary>
            <pre class="scroll" tabindex="0"><${Text} of=${JSON.stringify(caller.claims, null, 2)} /></pre>
          </details>`
        : null
    }
  </section>`
}

const KINDS = { none: 'none is added', header: 'a header', aws: 'a signature (SigV4)' }

function whereFrom({ lookup, beganMs, armedMs }, atMs) {
  const took = armedMs === undefined ? '' : ` in ${durationOf(armedMs - beganMs)}`
  switch (lookup.from) {
    case 'config':
      return 'from the configuration'
    case 'cache':
      return `from the cache: obtained ${distanceOf(lookup.obtainedAtMs, atMs)}, valid until ${distanceOf(lookup.endMs, atMs)}, refreshed ${distanceOf(lookup.refreshAtMs, atMs)}`
    case 'flight':
      return `shared a fetch in flight, waited${took}`
    case 'service':
      return armedMs === undefined ? 'could not be fetched' : `fetched${took}`
    case 'nowhere':
      return 'there is none for this caller'
    default:
      return 'cached failure'
  }
}

const OUTCOMES = {
  matched: 'matched',
  not_matched: 'no match',
  error: 'could not be evaluated',
  limit: 'reached its limit',
  overage: 'claim left out of the token',
  not_evaluated: 'not reached',
}

/** Tags, source identity and policies of the session; values with --show-claims only. */
function Attributes({ of: { tags, sourceIdentity, policy, writtenPolicy, policyArns, externalId } }) {
  const shownPolicy = policy ?? writtenPolicy
  return html`${tags.map(
    (tag) =>
      html`<${Fact} key=${tag.key} name=${`Tag ${tag.key}`}>
          ${tag.value === undefined ? html`<span class="hint">shown with --show-claims</span>` : html`<${Text} of=${tag.value} />`}
          ${tag.transitive ? ' (transitive)' : ''}
        <//>`,
  )}
    ${sourceIdentity === undefined ? null : html`<${Fact} name="Source identity"><${Text} of=${sourceIdentity} /><//>`}
    ${shownPolicy === undefined ? null : html`<${Fact} name="Session policy"><code><${Text} of=${shownPolicy} /></code><//>`}
    ${policyArns.map((arn) => html`<${Fact} key=${arn} name="Session policy"><${Text} of=${arn} /><//>`)}
    ${externalId === undefined ? null : html`<${Fact} name="External id"><${Text} of=${externalId} /><//>`}`
}

function Verdict({ of: { outcome, reason, missingKey } }) {
  return html`<td>${OUTCOMES[outcome]}${reason ? `: ${reason}` : ''}${missingKey ? ` (${missingKey})` : ''}</td>`
}

function Decision({ decision }) {
  const { choice, session, sessionNameClaim, refusal, config } = decision
  return html`<div class="decision">
    <dl>
      <${Fact} name="Role">
        ${choice.roleArn ? html`<${Text} of=${choice.roleArn} /> (by ${choice.by})` : html`none: ${refusal ?? choice.refusal}${choice.reason ? ` (${choice.reason})` : ''}`}
      <//>
      <${Fact} name="Session name">
        ${session?.name ? html`<${Text} of=${session.name} />` : html`<span class="hint">from the claim ${sessionNameClaim}; shown with --show-claims</span>`}
      <//>
      ${choice.attributes ? html`<${Attributes} of=${choice.attributes} />` : null}
      <${Fact} name="Configuration"><${Text} of=${config} /><//>
    </dl>
    <div class="scroll" tabindex="0" role="region" aria-label="Role mappings">
      <table class="mappings">
        <thead>
          <tr>
            <th scope="col">Mapping</th>
            <th scope="col">Rule</th>
            <th scope="col">Role</th>
            <th scope="col">Verdict</th>
          </tr>
        </thead>
        <tbody>
          ${choice.steps.map(
            (step) =>
              html`<tr key=${step.mapping} class=${`v-${step.outcome}`}>
                <th scope="row">${step.mapping}${step.priority === undefined ? '' : ` (priority ${step.priority})`}</th>
                <td>
                  ${step.kind} <code><${Text} of=${step.rule} /></code>
                </td>
                <td><${Text} of=${step.roleArn} /></td>
                <${Verdict} of=${step} />
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
  </div>`
}

/** Which rule allowed or denied the request, and what became of the others. */
export function RulesPart({ rules }) {
  if (rules === undefined) return null
  const verdict = rules.allowed
    ? 'allowed'
    : rules.missingScopes.length > 0
      ? `scopes missing: ${rules.missingScopes.join(' ')}`
      : 'denied'
  return html`<section class="part" aria-label="Authorization">
    <h3>Authorization</h3>
    <p>
      ${verdict} by ${rules.rule === undefined ? 'the default of the route' : html`the rule <code><${Text} of=${rules.rule} /></code>`}
    </p>
    <div class="scroll" tabindex="0" role="region" aria-label="Rules">
      <table class="mappings">
        <thead>
          <tr>
            <th scope="col">Rule</th>
            <th scope="col">Effect</th>
            <th scope="col">Verdict</th>
          </tr>
        </thead>
        <tbody>
          ${rules.steps.map(
            (step) =>
              html`<tr key=${step.rule} class=${`v-${step.outcome}`}>
                <th scope="row"><${Text} of=${step.rule} /></th>
                <td>${step.effect}</td>
                <${Verdict} of=${step} />
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
  </section>`
}

function credentialLine(attempt, count, atMs) {
  const which = count > 1 ? `Attempt ${attempt.number}: ` : ''
  return `${which}${attempt.credential ? KINDS[attempt.credential] : 'no credential'}, ${whereFrom(attempt, atMs)}`
}

/** With which credential each try went, where it came from, and which role was chosen why. */
export function CredentialPart({ request }) {
  const { attempts, decision, summary } = request
  return html`<section class="part" aria-label="Credential">
    <h3>Credential</h3>
    ${attempts.length === 0 ? html`<p class="hint">None was obtained.</p>` : null}
    <ul class="plain">
      ${attempts.map(
        (attempt) =>
          html`<li key=${attempt.number}>
            ${credentialLine(attempt, attempts.length, summary.atMs)}
        </li>`,
      )}
    </ul>
    ${decision ? html`<${Decision} decision=${decision} />` : null}
  </section>`
}
