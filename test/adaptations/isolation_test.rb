# frozen_string_literal: true

# test: each version

require "test_helper"
require "open3"
require "support/served_process"

# One request's locale, user and error context are not another's: real gems, fifty requests at the same time in one
# thread, no network.
class IsolationTest < Minitest::Test
  REQUESTS = 50

  def teardown = @served&.stop

  def serve(name, gem = nil, **environment)
    skip "needs the gem #{gem}: bin/setup" if gem && Gem::Specification.find_all_by_name(gem).empty?
    file = File.expand_path("isolation/#{name}.ru", __dir__)
    environment = { "RACK_ENV" => "production", "RAILS_ENV" => nil, "HEDDLE_ISOLATE" => nil,
                    **environment.transform_keys(&:to_s) }
    @served = ServedProcess.new([*ServedProcess::HEDDLE, "serve", file, "--port", "0", "--workers", "0",
                                 "--no-access-log"], environment:)
  end

  # @return [Array<Array(String, String)>] what each was to get, and got; twice, so that fibers are used again
  def answers
    Array.new(2) do |round|
      Array.new(REQUESTS) do |number|
        id = "#{round}x#{number}"
        Thread.new { [yield(id), @served.get("/?#{id}").body] }
      end.map(&:value)
    end.flatten(1)
  end

  def assert_own(&)
    answers(&).each { |wanted, got| assert_equal wanted, got, @served.output }
  end

  def test_i18n_keeps_the_locale_of_each_request
    serve("i18n", "i18n")
    assert_own { |id| "locale#{id} locale#{id} en" }
  end

  def test_without_isolation_i18n_shows_one_request_the_locale_of_another
    serve("i18n", "i18n", HEDDLE_ISOLATE: "off")

    refute(answers { |id| "locale#{id}" }.all? { |wanted, got| got.start_with?("#{wanted} ") })
  end

  def test_sentry_keeps_the_user_of_each_request
    serve("sentry", "sentry-ruby")
    assert_own { |id| id }
  end

  def test_sentry_keeps_the_user_of_each_request_with_its_middleware
    serve("sentry", "sentry-ruby", WITH_MIDDLEWARE: "yes")
    assert_own { |id| id }
  end

  def test_sentry_keeps_the_user_of_each_request_with_its_own_setting_for_fibers
    serve("sentry", "sentry-ruby", LEVEL: "fiber", WITH_MIDDLEWARE: "yes", HEDDLE_ISOLATE: "off")
    assert_own { |id| id }
  end

  def test_honeybadger_keeps_the_context_of_each_request
    serve("honeybadger", "honeybadger")
    assert_own { |id| id }
  end

  def test_opentelemetry_keeps_the_span_of_each_request
    serve("opentelemetry", "opentelemetry-sdk")
    assert_own { |id| id }
  end

  def test_request_store_is_empty_when_a_request_begins
    serve("request_store", "request_store")
    assert_own { |id| id }
  end

  def test_a_variable_that_is_listed_belongs_to_its_request
    serve("plain", HEDDLE_ISOLATE: "i18n_config,tenant")
    assert_own { |id| "#{id} true false" }
  end

  def test_outside_of_a_loop_and_of_other_threads_variables_are_what_they_were
    program = <<~RUBY
      Heddle::Adaptations::Isolation.start(%w[tenant])
      Thread.current.thread_variable_set(:tenant, 1)
      Thread.current.thread_variable_set(:other, 2)
      seen = [Heddle.run do
        before = Thread.current.thread_variable_get(:tenant)
        Thread.current.thread_variable_set(:tenant, 3)
        [before, Thread.new { Thread.main.thread_variable_get("tenant") }.value, Thread.current.thread_variable_get(:other)]
      end, Thread.current.thread_variable_get(:tenant), Thread.current.thread_variable?(:tenant)]
      ractor = Ractor.new do
        Thread.current.thread_variable_set(:tenant, 4)
        [Thread.current.thread_variable_get("tenant"), Thread.current.thread_variable_get(:other)]
      end
      print [*seen, ractor.respond_to?(:value) ? ractor.value : ractor.take].inspect
    RUBY
    lib = File.expand_path("../../lib", __dir__)
    output, status = Open3.capture2e(RbConfig.ruby, "-W0", "-I", lib, "-r", "heddle/server", "-e", program)

    assert_predicate status, :success?, output
    assert_equal "[[nil, 1, 2], 1, true, [4, nil]]", output
  end
end
