# frozen_string_literal: true

require "test_helper"
require "examples/served_example"
require "open3"

# Which isolation level Rails uses, and what sets it.
class RailsIsolationLevelTest < Minitest::Test
  HEDDLE = ServedProcess::HEDDLE
  FOLDER = File.expand_path("../examples/support", __dir__)
  private_constant :HEDDLE, :FOLDER

  def setup
    skip "needs the gems of examples/rails: bin/setup" unless ServedExample.gems?("rails")
  end

  def ruby(*arguments)
    Open3.capture2e(ServedExample.bundle("rails").merge("RAILS_ENV" => "production"), *arguments, chdir: FOLDER)
  end

  def test_an_application_that_insists_on_threads_is_refused_with_the_reason
    output, status = ruby(*HEDDLE, "serve", "thread_level.ru", "--port", "0")

    assert_equal 1, status.exitstatus, output
    assert_equal 1, output.lines.size, output
    assert_match(/\Aheddle: config.active_support.isolation_level is :thread, but Heddle runs each request in a fiber/,
                 output)
  end

  def test_in_mode_thread_it_is_served
    environment = ServedExample.bundle("rails").merge("RAILS_ENV" => "production")
    served = ServedProcess.new([*HEDDLE, "serve", "thread_level.ru", "--port", "0", "--mode", "thread", "-w", "0"],
                               environment:, folder: FOLDER)

    assert_equal "200 thread", served.get("/").then { |answer| "#{answer.code} #{answer.body}" }, served.output
  ensure
    served&.stop
  end

  LEVEL = "print Rails::Railtie::Configuration.new.active_support.isolation_level.inspect"

  def level(*files)
    code = [*files, "heddle"].map { |file| "require #{file.dump}; " }.join + LEVEL
    output, status = ruby(RbConfig.ruby, "-I", File.expand_path("../../lib", __dir__), "-e", code)

    assert_predicate status, :success?, output
    output
  end

  def test_the_gem_in_the_gemfile_isolates_by_fiber_in_a_process_that_serves
    assert_equal ":fiber", level("heddle/cli", "rails")
    assert_equal ":fiber", level("rails", "rails/command", "rails/commands/server/server_command")
  end

  def test_the_gem_in_the_gemfile_leaves_the_level_of_other_processes
    assert_equal "nil", level("rails")
  end

  def test_sentry_isolates_by_fiber_unless_the_application_configures_it
    skip "needs the gem sentry-ruby: bin/setup" if Gem::Specification.find_all_by_name("sentry-ruby").empty?
    %w[fiber thread].each do |level|
      said = "config.hub_isolation_level = :thread" if level == "thread"
      program = <<~RUBY
        %w[rails sentry-ruby heddle].each { |name| require name }
        class Told < Rails::Application
          config.eager_load = false
          config.logger = Logger.new(nil)
          initializer("sentry") { Sentry.init { |config| #{said} } }
        end
        Told.initialize!
        print Sentry.configuration.hub_isolation_level
      RUBY
      output, status = Open3.capture2e(RbConfig.ruby, "-I", File.expand_path("../../lib", __dir__), "-e", program)

      assert_predicate status, :success?, output
      assert_equal level, output
    end
  end

  def test_without_rails_nothing_of_it_is_loaded
    program = 'require "heddle"; print defined?(Rails).inspect, $LOADED_FEATURES.grep(/railtie/).size'
    output, status = ruby(RbConfig.ruby, "-I", File.expand_path("../../lib", __dir__), "-e", program)

    assert_predicate status, :success?, output
    assert_equal "nil0", output
  end
end
