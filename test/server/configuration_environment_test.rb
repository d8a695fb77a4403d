# frozen_string_literal: true

require "test_helper"
require "heddle/server"
require "tmpdir"

# The variables that an application is deployed with.
class ConfigurationEnvironmentTest < Minitest::Test
  Configuration = Heddle::Server::Configuration

  def load(flags = {}, **environment)
    Configuration.load(flags:, environment: environment.transform_keys(&:to_s), file: nil)
  end

  def test_environment_variables_of_puma_and_rails_are_used
    configuration = load(PORT: "3001", WEB_CONCURRENCY: "1", PIDFILE: "tmp/x.pid", RAILS_ENV: "test", RACK_ENV: "none")

    assert_equal [3001, 1, File.expand_path("tmp/x.pid"), "test"],
                 %i[port workers pidfile environment].map { |name| configuration[name] }
    assert_equal %w[PORT WEB_CONCURRENCY PIDFILE RAILS_ENV],
                 %i[port workers pidfile environment].map { |name| configuration.source(name).place }
    assert_equal "production", load(RACK_ENV: "production").environment
    assert_equal "production", load(APP_ENV: "production", RACK_ENV: "none").environment, "Sinatra's, as under Puma"
    assert_equal :auto, Heddle::Options::BY_NAME.fetch(:workers).parse("auto", "WEB_CONCURRENCY")
  end

  def test_heddles_own_variables_come_first_and_empty_ones_say_nothing
    assert_equal 4000, load(PORT: "3001", HEDDLE_PORT: "4000").port
    assert_equal "staging", load(RAILS_ENV: "test", HEDDLE_ENVIRONMENT: "staging").environment
    assert_equal 9_292, load(PORT: "").port
  end

  def test_the_number_of_threads_is_railss_only_where_a_thread_is_a_request
    assert_equal [1, 7, 3, 2],
                 [load(RAILS_MAX_THREADS: "7"), load(RAILS_MAX_THREADS: "7", HEDDLE_MODE: "thread"),
                  load(RAILS_MAX_THREADS: "7", HEDDLE_MODE: "thread", HEDDLE_THREADS: "3"),
                  load({ threads: "2" }, RAILS_MAX_THREADS: "7", HEDDLE_MODE: "thread")].map(&:threads)
    assert_equal 5, load(HEDDLE_MODE: "thread").threads
    assert_match(/\ARAILS_MAX_THREADS must be a whole number, but is "many"\z/,
                 assert_raises(Heddle::Server::ConfigurationError) do
                   load(RAILS_MAX_THREADS: "many", HEDDLE_MODE: "thread")
                 end.message)
  end

  def test_every_variable_that_the_code_reads_is_known
    sources = Dir.glob(File.join(ROOT, "{lib,ext,bin,benchmark,.ci}/**/*")).select { |path| File.file?(path) }
    names = sources.reject { |path| path.end_with?(".so", ".o") }
                   .flat_map { |path| File.binread(path).scan(/(?:["']|\$\{|export )(HEDDLE_[A-Z_]+)(?=["'=:])/) }
                   .flatten.uniq

    assert_empty %w[HEDDLE_NATIVE HEDDLE_WERROR HEDDLE_TEST_EXAMPLES_ON] - names
    assert_empty load(**names.to_h { |name| [name.to_sym, ""] }).warnings
  end

  def test_what_only_puma_reads_is_warned_of
    assert_equal ["the environment variable GOOD_JOB_IN_PUMA has no effect: Heddle has no such plugin"],
                 load(GOOD_JOB_IN_PUMA: "1", SOLID_QUEUE_IN_PUMA: "true").warnings
    Dir.mktmpdir do |folder|
      Dir.mkdir(File.join(folder, "config"))
      File.write(File.join(folder, "config/puma.rb"), "")
      find = -> { Heddle::Server::Configuration.load(environment: {}, folder:).warnings }

      assert_equal ["config/puma.rb is ignored; heddle init --from config/puma.rb converts it to config/heddle.rb"],
                   find.call
      Dir.mkdir(File.join(folder, "config/puma"))
      File.write(File.join(folder, "config/puma/development.rb"), "")

      assert_match(%r{\Aconfig/puma/development\.rb is ignored; heddle init --from config/puma/development}, *find.call)
      File.write(File.join(folder, "config/heddle.rb"), "")

      assert_empty find.call
    end
  end

  def test_one_thread_for_puma_is_warned_of_unless_the_limit_of_requests_is_said
    warned = ->(**variables) { load(RAILS_MAX_THREADS: "1", **variables).warnings.grep(/RAILS_MAX_THREADS is 1/).size }

    assert_equal 1, warned.call
    assert_equal [0, 0, 0], [{ HEDDLE_MAX_REQUESTS: "1" }, { HEDDLE_MAX_REQUESTS: "0" }, { HEDDLE_MODE: "thread" }]
      .map { |variables| warned.call(**variables) }
    assert_equal 0, warned.call(RAILS_MAX_THREADS: "3")
  end

  def test_only_what_means_nothing_is_warned_of
    configuration = load(HEDDLE_PIDFILE: "5", HEDDLE_TEST_ANYTHING: "1", HEDDLE_RUBY: "ruby", HEDDLE_PIDFIL: "5",
                         HEDDLE: "x", OTHER: "y")

    assert_equal ["the environment variable HEDDLE_PIDFIL has no effect. Did you mean HEDDLE_PIDFILE?"],
                 configuration.warnings
  end
end
