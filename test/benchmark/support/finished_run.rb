# frozen_string_literal: true

require_relative "../../../benchmark/support/bench"

# What a run of two rows and five contestants has given.
module FinishedRun
  RESULT = {
    suite: "scheduler", title: "Schedulers", rounds: 3, quick: false,
    environment: { "Ruby" => "3.4.11", "cores" => "2" },
    contestants: [
      { key: "ours", label: "Heddle epoll", role: "heddle", version: "0.1.0" },
      { key: "quick", label: "quick one", role: "peer", version: "2" },
      { key: "slow", label: "slow one", role: "peer", version: "1" },
      { key: "plain", label: "blocking", role: "baseline", version: "3.4.11" },
      { key: "gone", label: "gone", role: "peer", version: nil, missing: "not for this Ruby" }
    ],
    rows: [
      { key: "fibers", title: "100,000 fibers", unit: "s", better: "lower", details: ["cpu_s"],
        sets: [
          { contestant: "ours", samples: [{ value: 0.5, cpu_s: 0.4 }, { value: 0.4 }, { value: 0.6 }] },
          { contestant: "quick", samples: [{ value: 0.75 }] },
          { contestant: "slow", samples: [{ value: 9.0 }], failure: "no answer within 30 s" },
          { contestant: "plain", samples: [], exclusion: "nothing to create" }
        ] },
      { key: "server", title: "A server", unit: "req/s", better: "higher", details: [],
        sets: [
          { contestant: "ours", samples: [{ value: 30_000 }] }, { contestant: "quick", samples: [{ value: 20_000 }] },
          { contestant: "slow", samples: [{ value: 40_000 }] }, { contestant: "plain", samples: [{ value: 90_000 }] }
        ] }
    ]
  }.freeze
end
