# frozen_string_literal: true

module Heddle
  module CLI
    class Doctor
      # Gems that were tried with Heddle, and the settings that an application needs for them. `test/trials/matrix/run
      # --write` makes the table of docs/gems.md from these rows and its own results.
      module GemRows
        # One gem.
        #
        # @!attribute name [String]
        # @!attribute configure [String, nil] what to configure, or to mind; nil: nothing
        # @!attribute tested_by [String, nil] the file that tries it, where that is no program of the matrix
        # @!attribute untried [String, nil] why it was not tried
        Row = Data.define(:name, :configure, :tested_by, :untried) do
          def initialize(name:, configure: nil, tested_by: nil, untried: nil) = super

          # @return [String] whether it was tried
          def summary = untried ? "was not tried with Heddle: #{untried}" : "works with Heddle (docs/gems.md)"
        end

        ASYNC = "`require \"heddle/async\"` in programs of your own; the server does it"
        EXAMPLE = "test/examples/llm_test.rb"

        ALL = [
          Row.new(name: "activerecord", configure: "the pool is as large as a worker may have requests that query at " \
                                                   "once; see [Rails](rails.md)"),
          Row.new(name: "sequel", configure: "`Sequel.extension :fiber_concurrency` before the first query, and with " \
                                             "SQLite `busy_handler_timeout`, in programs of your own; the server " \
                                             "does both"),
          Row.new(name: "pg", tested_by: "test/databases/abandoned_query_test.rb"),
          Row.new(name: "trilogy", tested_by: "test/databases/abandoned_query_test.rb"),
          Row.new(name: "mysql2", tested_by: "test/databases/abandoned_query_test.rb"),
          Row.new(name: "sqlite3", configure: "`busy_handler_timeout`, as Rails sets it, and not `busy_timeout`, " \
                                              "which waits with Ruby's lock; keep queries short"),
          Row.new(name: "redis", configure: "one object serves one command at a time: take a pool for many tasks"),
          Row.new(name: "redis-client"),
          Row.new(name: "hiredis-client",
                  configure: "leave it out where commands block: the Ruby driver waits with the loop"),
          Row.new(name: "dalli", configure: "one client serves one command at a time: take a pool for many tasks"),
          Row.new(name: "mongo", configure: "`max_pool_size` as large as the tasks that query at once"),
          Row.new(name: "mongoid", configure: "`isolation_level: :fiber`, which needs Mongoid 9.1"),
          Row.new(name: "connection_pool", configure: "or `Heddle::Pool`; a nested check-out in one task gets the " \
                                                      "same object"),
          Row.new(name: "concurrent-ruby"),
          Row.new(name: "rack-timeout", tested_by: "test/adaptations/rack_timeout_test.rb"),
          Row.new(name: "sidekiq", configure: "the client; run its workers beside the server"),
          Row.new(name: "solid_queue", configure: "workers with `fibers:` need the gem async, whose reactor they run " \
                                                  "in a thread"),
          Row.new(name: "good_job"),
          Row.new(name: "solid_cache"),
          Row.new(name: "solid_cable"),
          Row.new(name: "activestorage"),
          Row.new(name: "actionmailer"),
          Row.new(name: "async", configure: ASYNC, tested_by: "test/async/contract_test.rb"),
          Row.new(name: "async-http", configure: ASYNC, tested_by: "test/async/gems_test.rb"),
          Row.new(name: "async-redis", configure: ASYNC, tested_by: "test/async/gems_test.rb"),
          Row.new(name: "async-websocket", configure: ASYNC, tested_by: "test/async/gems_test.rb"),
          Row.new(name: "async-job", configure: ASYNC),
          Row.new(name: "async-cable", configure: ASYNC),
          Row.new(name: "live", configure: ASYNC),
          Row.new(name: "graphql", configure: "`use GraphQL::Dataloader::AsyncDataloader`; " \
                                              "`GraphQL::Dataloader, nonblocking: true`, which graphql deprecates, " \
                                              "runs a loop of its own and raises ThreadError",
                  tested_by: "test/async/gems_test.rb"),
          Row.new(name: "rdkafka",
                  configure: "`Heddle.offload { consumer.poll(100) }`: else a consumer that waits blocks the loop"),
          Row.new(name: "waterdrop"),
          Row.new(name: "karafka", configure: "run `karafka server` beside the server"),
          Row.new(name: "grpc", configure: "`Heddle.offload { stub.call(request) }`: else a call blocks the loop"),
          Row.new(name: "nokogiri", configure: "parsing holds Ruby's lock: large documents show up in stall reports"),
          Row.new(name: "commonmarker"),
          Row.new(name: "google-protobuf"),
          Row.new(name: "mini_racer", configure: "a context runs one task at a time; its callbacks wait in place"),
          Row.new(name: "wasmtime", configure: "functions of the host that wait block the loop"),
          Row.new(name: "bcrypt"),
          Row.new(name: "argon2",
                  configure: "hashing holds Ruby's lock under any server: keep `t_cost` and `m_cost` low"),
          Row.new(name: "rbnacl"),
          Row.new(name: "ruby-vips"),
          Row.new(name: "mini_magick"),
          Row.new(name: "ruby_llm", configure: "`cancel_on_disconnect`", tested_by: EXAMPLE),
          Row.new(name: "openai", configure: "`cancel_on_disconnect`", tested_by: EXAMPLE),
          Row.new(name: "anthropic", configure: "`cancel_on_disconnect`; a client has at most 99 connections",
                  tested_by: EXAMPLE),
          Row.new(name: "aws-sdk-s3"),
          Row.new(name: "httpx", configure: "a persistent session that several tasks share: " \
                                            "`with(resolver_class: :system)`"),
          Row.new(name: "excon"),
          Row.new(name: "faraday",
                  configure: "the adapter `:heddle`, for which a response that is cut off is an error"),
          Row.new(name: "net-http-persistent", configure: "`pool_size` as large as the requests that are made at once"),
          Row.new(name: "typhoeus",
                  configure: "`Heddle.offload { Typhoeus.get(url) }`: else a request blocks the loop"),
          Row.new(name: "curb"),
          Row.new(name: "opentelemetry-sdk"),
          Row.new(name: "opentelemetry-instrumentation-pg"),
          Row.new(name: "opentelemetry-instrumentation-net_http"),
          Row.new(name: "sentry-ruby", tested_by: "test/cli/doctor_test.rb"),
          Row.new(name: "datadog"),
          Row.new(name: "newrelic_rpm")
        ].freeze
        private_constant :ASYNC, :EXAMPLE
      end
    end
  end
end
