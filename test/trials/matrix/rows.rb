# frozen_string_literal: true

require_relative "../../../lib/heddle/cli/doctor/gem_settings"

module Trials
  # The gems of the matrix, in the order of the page.
  module MatrixRows
    NAMES = %w[
      activerecord sequel pg trilogy mysql2 sqlite3 redis redis-client hiredis-client dalli mongo mongoid
      connection_pool concurrent-ruby rack-timeout sidekiq solid_queue good_job solid_cache solid_cable
      activestorage actionmailer async async-http async-redis async-websocket async-job async-cable live
      graphql rdkafka waterdrop karafka grpc nokogiri commonmarker google-protobuf mini_racer wasmtime
      bcrypt argon2 rbnacl ruby-vips mini_magick ruby_llm openai anthropic aws-sdk-s3 httpx excon faraday
      net-http-persistent typhoeus curb opentelemetry-sdk opentelemetry-instrumentation-pg
      opentelemetry-instrumentation-net_http sentry-ruby datadog newrelic_rpm
    ].freeze
    # The file that tries them, where it is not a program of the matrix.
    TESTED_BY = {
      "test/databases/abandoned_query_test.rb" => %w[pg trilogy mysql2],
      "test/adaptations/rack_timeout_test.rb" => %w[rack-timeout],
      "test/async/contract_test.rb" => %w[async],
      "test/async/gems_test.rb" => %w[async-http async-redis async-websocket graphql],
      "test/examples/llm_test.rb" => %w[ruby_llm openai anthropic],
      "test/cli/doctor_test.rb" => %w[sentry-ruby]
    }.freeze
    # One gem.
    #
    # @!attribute name [String]
    # @!attribute tested_by [String, nil]
    Row = Data.define(:name, :tested_by) do
      # @return [String] what to configure, as `heddle doctor` says it
      def configure = Heddle::CLI::Doctor::GemSettings::ALL.fetch(name, "nothing")

      # @return [String] the path of what tries it, from the checkout's folder
      def place = tested_by || "test/trials/matrix/programs/#{name.tr("-", "_")}.rb"
    end
    ALL = NAMES.map { |name| Row.new(name, TESTED_BY.find { |_, names| names.include?(name) }&.first) }.freeze
  end
end
