.DEFAULT_GOAL := help
PY := .venv/bin/python
S = $(or $(STACK),dev)
# Every target that `make help` lists; none is a file.
.PHONY: $(shell sed -n 's/^\([a-z0-9-]*\):.*\#\# .*/\1/p' Makefile)
# The text of a variable as one word of a shell, and a name in small letters.
quoted = '$(subst ','\'',$(value $(1)))'
# Said behind make: every shell has a USER of its own in the environment.
said = $(filter command line,$(origin $(1)))
lower = $(shell echo $(1) | tr A-Z a-z)

##@ Begin

help: ## this list
	@awk -F ':.*## ' '/^##@ /{printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## tools, engine, artefacts and machine image; seconds when they are there
	@bash lab/setup.sh

engine: ## Python environment, engine and plugins alone: all that stacks of given machines need; BUNDLE=folder: out of a bundle, without a network
	@$(if $(BUNDLE),BUNDLE=$(call quoted,BUNDLE) )bash lab/setup.sh engine

python: ## the Python environment alone
	@$(if $(BUNDLE),BUNDLE=$(call quoted,BUNDLE) )bash lab/setup.sh python

planning: ## the packages that plans need, alone: installed in seconds
	@$(if $(BUNDLE),BUNDLE=$(call quoted,BUNDLE) )bash lab/setup.sh plan

dev: ## a cluster of 3 masters and 2 workers on this computer; ADDONS="prometheus logs" or all: with add-ons of the catalogue
	@$(if $(ADDONS),bash lab/setup.sh python && $(PY) -m operations.name_addons dev $(call quoted,ADDONS))
	@bash lab/setup.sh
	@bash lab/dev.sh

clean: ## destroy the dev cluster and whatever this checkout left, lab images too; keeps the cache
	@bash lab/clean.sh

##@ Change a cluster: check, plan, apply

hostkeys: python ## SSH host keys that the machines of STACK show, as lines for its file, with fingerprints to compare; changes nothing
	@bash ci/ssh-key.sh $(PY) -m operations.hostkeys $(S)

preflight: python ## look at every machine of STACK (dev) and list all its problems; changes nothing
	@bash ci/ssh-key.sh $(PY) -m operations.preflight $(S)

plan: planning ## what STACK (dev) would be, in words; PREVIOUS=stack file to compare with; FORMAT=text, json or markdown; VERBOSE=1
	@$(PY) -m stacks Pulumi.$(S).yaml $(if $(FORMAT),--format "$(FORMAT)") $(if $(PREVIOUS),--previous "$(PREVIOUS)") $(if $(VERBOSE),--verbose)

preview: $(if $(WORDS),planning,engine) ## what an update of STACK (dev) would do: plan against BASE (a git commit), engine's diff; WORDS=1: the plan alone; VERBOSE=1
	@$(PY) -m operations.preview $(S) $(if $(BASE),--base "$(BASE)") $(if $(WORDS),--words) $(if $(VERBOSE),--verbose)

up: engine ## show the plan of STACK (dev), ask, apply it; YES=1 asks nothing; APPROVED=folder of a preview: only what that one said; BACKUP_STATE=1: seal the state first; VERBOSE=1: the engine's own lines
	@bash ci/ssh-key.sh $(PY) -m operations.up $(S) $(if $(YES),--yes) $(if $(APPROVED),--approved "$(APPROVED)") $(if $(BACKUP_STATE),--backup-state) $(if $(VERBOSE),--verbose)
	@$(PY) -m operations.summary $(S)

outputs: engine ## kubeconfig and inventory of STACK (dev) as files in .local/outputs
	@$(PY) -m operations.outputs $(S)

kubeconfig: engine ## the administrator's kubeconfig of STACK (dev) as a file, and the line that makes kubectl use it; MERGE=1: into ~/.kube/config too; USER=name GROUPS="dev ops" HOURS=12: a person's, with a certificate that ends; OIDC=1: for people of an identity provider, SCOPES="groups"
	@bash ci/ssh-key.sh $(PY) -m operations.kubeconfig $(S) $(foreach name,USER GROUPS HOURS OIDC SCOPES,$(if $(call said,$(name)),--$(call lower,$(name)) $(call quoted,$(name)))) $(if $(MERGE),--merge)

chart: python helm ## fetch a Helm chart into folder charts, once: CHART=name REPO=https://..., or CHART=oci://...; VERSION=1.2.3; prints the lines for a stack file
	@$(PY) -m operations.chart "$(CHART)" "$(VERSION)" $(if $(REPO),--repo "$(REPO)")

helm: python ## the helm that renders charts of stacks, in .local/bin; brought by itself where a stack file has one
	@$(PY) -m artifacts.helm

##@ Look at a cluster; nothing is changed

status: engine ## the cluster of STACK (dev) on one screen; changes nothing
	@bash ci/ssh-key.sh $(PY) -m operations.status $(S)

drift: engine ## what differs between the config of STACK (dev) and its machines; changes nothing
	@bash ci/ssh-key.sh $(PY) -m operations.drift $(S)

logs: engine ## journal of NODE, or of all nodes of POOL or ROLE; UNIT=kubelet, POD=kube-system/coredns or PHASE=master; SINCE=15m; FOLLOW=1; SOURCE=machines
	@bash ci/ssh-key.sh $(PY) -m operations.logs $(S) $(foreach name,NODE POOL ROLE UNIT POD PHASE SINCE SOURCE,$(if $($(name)),--$(call lower,$(name)) $(call quoted,$(name)))) $(if $(FOLLOW),--follow)

ssh: engine ## a session on NODE of STACK (dev), with the stack's own user and key; CMD="..." runs one command
	@bash ci/ssh-key.sh $(PY) -m operations.session $(S) "$(NODE)" $(if $(CMD),--command $(call quoted,CMD))

debug: engine ## tools on NODE of STACK (dev), or beside POD=namespace/name, until they are left: a shell, or COMMAND="..." and its exit code; VIA=pod or ssh, IMAGE, HOURS (4), CONTAINER, PROFILE
	@bash ci/ssh-key.sh $(PY) -m operations.debug $(S) $(foreach name,NODE POD CONTAINER COMMAND IMAGE PROFILE VIA HOURS,$(if $(call said,$(name)),--$(call lower,$(name)) $(call quoted,$(name))))

verify: engine ## the acceptance check on the cluster of STACK (dev)
	@bash ci/ssh-key.sh $(PY) -m operations.verify $(S)

cis: engine ## the CIS benchmark's controls on the machines of STACK (dev); FORMAT=json; changes nothing
	@bash ci/ssh-key.sh $(PY) -m operations.cis $(S) $(if $(FORMAT),--format "$(FORMAT)")

report: engine ## one archive of what a supporter of STACK (dev) needs, in .local/reports, without its secrets; sealed with KUBE_HA_STATE_KEY where that is set; OPEN=file opens one; changes nothing
	@bash ci/ssh-key.sh $(PY) -m operations.report $(S) $(if $(OPEN),--open "$(OPEN)")

tunnel: python ## hold the tunnel to the bastion of STACK, for machines of clouds with access: tunnel; until Ctrl-C
	@$(PY) -m operations.tunnel $(S)

api: engine ## hold a way to the API of STACK, for machines of clouds; the kubeconfig of `make outputs` goes by it; until Ctrl-C
	@$(PY) -m operations.api $(S)

dashboard: engine ## hold a way to the pages of add-on prometheus of STACK (dev): the cluster on one screen; PORT (9090); until Ctrl-C
	@$(PY) -m operations.dashboard $(S) $(if $(PORT),--port "$(PORT)")

##@ Back up, restore, maintain

backup: engine ## a verified snapshot of etcd of STACK (dev), brought to .local/backups, or TO=folder; SNAPSHOT=store:latest fetches one, LIST=1 lists
	@bash ci/ssh-key.sh $(PY) -m operations.backup $(S) $(if $(TO),--to "$(TO)") $(if $(LIST),--list) $(if $(SNAPSHOT),--snapshot "$(SNAPSHOT)") $(if $(UNAUTHENTICATED),--unauthenticated)

restore: engine ## etcd of STACK again, by SNAPSHOT=file (store:latest) or FROM=node that has data; ON=node, WITHOUT="nodes that are gone", REPLACE=1
	@bash ci/ssh-key.sh $(PY) -m operations.restore $(S) $(if $(SNAPSHOT),--snapshot "$(SNAPSHOT)") $(if $(FROM),--from "$(FROM)") $(if $(ON),--on "$(ON)") $(if $(WITHOUT),--without "$(WITHOUT)") $(if $(REPLACE),--replace) $(if $(UNMARKED),--unmarked) $(if $(UNAUTHENTICATED),--unauthenticated) $(if $(SEED),--seed "$(SEED)")

seal: engine ## the whole state of STACK (dev), sealed with KUBE_HA_STATE_KEY, in .local/backups; OPEN=file makes one ready for an import
	@$(PY) -m operations.sealed_state $(S) $(if $(TO),--to "$(TO)") $(if $(OPEN),--open "$(OPEN)")

defrag: engine ## etcd of STACK gives back the disk that is free inside, member by member, the leader last; ends an alarm NOSPACE
	@bash ci/ssh-key.sh $(PY) -m operations.defrag $(S)

wipe: engine ## remove everything of kube-ha from NODE, an adopted machine that left STACK and kept its data
	@bash ci/ssh-key.sh $(PY) -m operations.wipe $(S) "$(NODE)"

conformance: engine ## upstream's own tests judge the cluster of STACK (dev), and change it: FOCUS and SKIP, regular expressions; POLICIES=1: those of NetworkPolicies; YES=1 asks nothing; PROCS (4) at a time; MINUTES (180) at most
	@$(PY) -m operations.conformance $(S) $(foreach name,FOCUS SKIP,$(if $($(name)),--$(call lower,$(name)) $(call quoted,$(name)))) $(if $(POLICIES),--policies) $(if $(PROCS),--at-once "$(PROCS)") $(if $(MINUTES),--limit-minutes "$(MINUTES)") $(if $(YES),--yes)

##@ Air gap

bundle: python ## the air-gap bundle of the pinned versions, with the tool; Python and a network are enough where upstream answers; all that STACK (dev) needs; ALSO="kubernetes=1.35.4 tests=conformance"; CLOUDS="aws gcp": their plugins too
	@$(PY) -m artifacts.sources || bash lab/setup.sh
	@bash lab/bundle.sh $(S) --record $(foreach also,$(ALSO),--also $(also))
	@$(PY) -m toolchain.pack --into .local/bundle $(foreach cloud,$(CLOUDS),--cloud $(cloud))

sbom: python ## the bill of materials of the pinned versions, CycloneDX JSON on stdout; a bundle holds its own
	@$(PY) -m artifacts.sbom

##@ For a CI system

stacks: planning ## the stacks that any computer can work on, for a CI system
	@$(PY) -m operations.stack_list

unseal: python ## the kubeconfig of STACK (dev) that was handed on sealed
	@$(PY) -m operations.outputs --unseal $(S)

##@ Work on kube-ha itself

fmt: ## format what can be formatted
	@$(PY) -m ruff format . && $(PY) -m ruff check --fix . && .venv/bin/shfmt -i 2 -ci -w $$(git ls-files '*.sh')

check: python ## lint, types, imports between rooms, workflows; changes nothing
	@! git grep -nE '^(<<<<<<<|>>>>>>>) ' || { echo "the mark of a merge that was not finished"; exit 1; }
	@$(PY) -m ruff format --check . && $(PY) -m ruff check . && $(PY) -m mypy . && .venv/bin/lint-imports --no-logo --no-cache && .venv/bin/shfmt -i 2 -ci -d $$(git ls-files '*.sh') && git ls-files '*.sh' | xargs -n 6 -P "$$(nproc)" .venv/bin/shellcheck -x && .venv/bin/zizmor -q --offline --strict-collection .github/workflows && .venv/bin/check-jsonschema -q --builtin-schema vendor.github-workflows .github/workflows/*.yml && $(PY) -m pytest -q tests/unit/test_limits.py tests/unit/test_idioms.py tests/unit/test_docs.py && $(PY) -m tests.evidence --check

test: setup helm ## fast tiers, the core stories on the lab, and of the others those that nothing has run for longest; LANES at a time
	@bash lab/host.sh install tests
	@$(PY) -m toolchain.yaml_host
	@$(PY) -m tests.run core $(if $(LANES),--lanes $(LANES))

fuzz: setup helm ## planning with random configs and edits, N (10000) of each; TOLD (200) updates are compared with what is registered: those of SEED, else other ones every time, from life FIRST (0)
	@KUBE_HA_FUZZ=$(or $(N),10000) $(PY) -m pytest -q tests/fuzz && $(PY) -m tests.plan.told_fuzz --pairs $(or $(TOLD),200) $(if $(SEED),--seed $(SEED)) $(if $(FIRST),--first $(FIRST))

e2e: setup helm ## every story that has not passed yet on what is here, LANES at a time; all with FRESH=1, some with STORY=name,name
	@bash lab/host.sh install tests
	@$(PY) -m toolchain.yaml_host
	@$(PY) -m tests.run $(if $(FRESH),fresh,all) $(STORY) $(if $(LANES),--lanes $(LANES))

stories: python ## when each story passed last, and on which commit
	@$(PY) -m tests.run stories

evidence: python ## docs/evidence.md and the figures of README.md, from the record of stories that passed
	@$(PY) -m tests.evidence

bench: setup ## time of a create against the bare path of its steps, WHAT=membership, rollout, checks, network or thousand; let nothing else run here
	@$(PY) -m tests.bench.$(or $(WHAT),create)

cloud-acceptance: engine ## steps of a throwaway cluster on PROVIDER (gcp, aws, hcloud); done with SPEND_MONEY=1, PROJECT, SSH_FROM; TUNNEL=1; DOMAIN and ZONE for DNS; FROM=step
	@$(PY) -m tests.cloud_acceptance $(PROVIDER) $(if $(PROJECT),--project "$(PROJECT)") $(if $(SSH_FROM),--ssh-from "$(SSH_FROM)") $(if $(TUNNEL),--tunnel) $(if $(DOMAIN),--domain "$(DOMAIN)") $(if $(ZONE),--zone "$(ZONE)") $(if $(SPEND_MONEY),--spend-money) $(if $(FROM),--from "$(FROM)")
