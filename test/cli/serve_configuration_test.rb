# frozen_string_literal: true

require "test_helper"
require "support/served_process"
require "open3"
require_relative "application_folder"

# What `heddle serve` takes from the folder where it is started, and from the environment.
class ServeConfigurationTest < Minitest::Test
  include ApplicationFolder

  def application = "run ->(env) { [200, {}, [ENV.values_at('RAILS_ENV', 'RACK_ENV').inspect]] }"

  def teardown
    @served&.stop
    super
  end

  def serve(*arguments, **environment)
    clean = { "RAILS_ENV" => nil, "APP_ENV" => nil, "RACK_ENV" => nil, "PORT" => nil }
    @served = ServedProcess.new([*ServedProcess::HEDDLE, *arguments], folder: @folder,
                                                                      environment: clean.merge(environment))
  end

  def test_the_file_counts_where_nothing_else_is_said
    write("config/heddle.rb", "port 0\naccess_log false\nidle_timeout 5\n")
    serve("serve")
    @served.get("/seen")
    @served.stop

    refute_match(/GET/, @served.output)
    serve("serve", "--access-log")
    @served.get("/seen")
    @served.stop

    assert_match(%r{GET /seen}, @served.output)
    @served = nil
  end

  def test_the_application_finds_its_environment
    serve("serve", "-p", "0", "-e", "staging", "RACK_ENV" => "production")

    assert_equal '["staging", "staging"]', @served.get("/").body
    @served.stop
    serve("serve", "-p", "0", "RAILS_ENV" => "staging", "RACK_ENV" => "production")

    assert_equal '["staging", "production"]', @served.get("/").body
    @served.stop
    serve("serve", "-p", "0", "APP_ENV" => "production", "RACK_ENV" => "development")

    assert_equal '["production", "production"]', @served.get("/").body
    @served.stop
    serve("serve", "-p", "0")

    assert_equal '[nil, "development"]', @served.get("/").body
  end

  def test_the_pidfile_is_there_as_long_as_the_server_runs
    path = File.join(@folder, "tmp/pids/server.pid")
    serve("serve", "-p", "0", "PIDFILE" => "tmp/pids/server.pid")

    assert_equal "#{@served.pid}\n", File.read(path)
    @served.stop
    @served = nil

    refute_path_exists path
  end

  def test_an_unknown_environment_variable_is_reported_and_the_server_starts
    serve("serve", "-p", "0", "HEDDLE_PIDFIL" => "1")

    assert_equal "200", @served.get("/").code
    assert_match(/^heddle: the environment variable HEDDLE_PIDFIL has no effect. Did you mean HEDDLE_PIDFILE\?$/,
                 @served.output)
  end

  def test_a_mistake_in_the_file_is_one_message_and_nothing_starts
    write("config/heddle.rb", "port 0\nstop_timout 3\nfail 'no'\n")
    output, errors, status = Open3.capture3(*ServedProcess::HEDDLE, "serve", chdir: @folder)

    assert_equal [2, ""], [status.exitstatus, output]
    assert_equal ["heddle: config/heddle.rb:2: there is no option stop_timout. Did you mean stop_timeout?",
                  "heddle: config/heddle.rb:3: RuntimeError: no"],
                 errors.lines(chomp: true).grep_v(/\AIgnoring /)
  end

  def test_the_process_that_serves_alone_is_the_first_worker_for_its_hooks
    write("config/heddle.rb", <<~RUBY)
      worker_boot { |number| File.write("booted", number) }
      worker_stop { |number| File.write("stopped", number) }
      on_booted { raise "no pager" }
    RUBY
    serve("serve", "-p", "0")

    assert_equal "200", @served.get("/").code
    assert_equal "0", File.read(File.join(@folder, "booted"))
    refute_path_exists File.join(@folder, "stopped")
    @served.stop

    assert_equal "0", File.read(File.join(@folder, "stopped"))
    assert_includes @served.output, "the hook on_booted failed: RuntimeError: no pager (config/heddle.rb:3"
    @served = nil
  end

  def test_a_hook_that_fails_is_one_message
    write("config/heddle.rb", "worker_boot do\n  raise 'no queue'\nend\n")
    output, errors, status = Open3.capture3(*ServedProcess::HEDDLE, "serve", "-p", "0", chdir: @folder)

    assert_equal [1, ""], [status.exitstatus, output]
    assert_match(%r{\Aheddle: the hook worker_boot failed: RuntimeError: no queue \(config/heddle\.rb:2:.*\)\n\z},
                 errors.lines.grep_v(/\AIgnoring /).join)
  end

  def test_a_hook_that_exits_is_reported
    write("config/heddle.rb", "worker_boot { exit }\n")
    _, errors, status = Open3.capture3(*ServedProcess::HEDDLE, "serve", "-p", "0", chdir: @folder)

    assert_equal 1, status.exitstatus
    assert_includes errors, "heddle: the hook worker_boot failed: SystemExit: exit (config/heddle.rb:1"
  end

  def test_the_demo_does_not_take_the_folders_file
    write("config/heddle.rb", "raise 'not for the demo'")
    serve("demo", "-p", "0")

    assert_equal "200", @served.get("/").code
  end
end
