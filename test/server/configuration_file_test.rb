# frozen_string_literal: true

require "test_helper"
require "heddle/server"
require "fileutils"
require "tmpdir"

# `config/heddle.rb`: what it says, and what is said of its mistakes.
class ConfigurationFileTest < Minitest::Test
  Configuration = Heddle::Server::Configuration
  Options = Heddle::Options
  Wrong = Heddle::Server::ConfigurationError

  def setup
    @folder = File.realpath(Dir.mktmpdir)
    Dir.mkdir(File.join(@folder, "config"))
  end

  def teardown = FileUtils.remove_entry(@folder)

  def write(text, name = "config/heddle.rb") = File.write(File.join(@folder, name), text)

  def load(flags = {}, environment = {}, **) = Configuration.load(flags:, environment:, folder: @folder, **)

  def problems(text)
    write(text)
    assert_raises(Wrong) { load }.message.lines(chomp: true)
  end

  def test_every_option_but_the_files_own_name_can_be_said
    configuration = Options::IN_FILE.map do |option|
      next if %i[protect].include?(option.name)

      refute_empty option.example, option.name
      write(option.example)

      assert_equal [:file, "config/heddle.rb:1"], load.source(option.name).deconstruct.first(2), option.name
    end

    refute_empty configuration
  end

  def test_a_flag_comes_before_the_environment_and_that_before_the_file
    write("port 1\nstop_timeout 2\nmax_requests 3\n")
    configuration = load({ port: "11" }, { "PORT" => "111", "HEDDLE_STOP_TIMEOUT" => "22" })

    assert_equal [11, 22, 3, 1_024], %i[port stop_timeout max_requests queue_limit].map { |name| configuration[name] }
    assert_equal %w[--port HEDDLE_STOP_TIMEOUT config/heddle.rb:3 default],
                 %i[port stop_timeout max_requests queue_limit].map { |name| configuration.source(name).to_s }
  end

  def test_values_are_ruby_or_the_text_of_a_flag
    write(<<~RUBY)
      bind "a:1"
      bind "b:2", "c:3"
      header_limit "64k"
      body_limit 2_000
      head_timeout 1.5
      access_log false
      underscore_headers "on"
      pidfile "tmp/x.pid"
      port ENV.fetch("HEDDLE_TEST_NO_SUCH_VARIABLE", "3000")
      protect :off
      selector :epoll
    RUBY
    configuration = load

    assert_equal [%w[a:1 b:2 c:3], 65_536, 2_000, 1.5, false, true, 3_000, [], :epoll],
                 %i[bind header_limit body_limit head_timeout access_log underscore_headers port protect selector]
                   .map { |name| configuration[name] }
    assert_equal File.join(@folder, "tmp/x.pid"), configuration.pidfile
  end

  def test_the_file_is_looked_for_named_or_left_out
    assert_nil load.file
    write("port 1", "heddle.rb")

    assert_equal [1, "heddle.rb"], [load.port, load.file]
    write("port 2")
    write("port 3", "other.rb")

    assert_equal [2, "config/heddle.rb"], [load.port, load.file]
    assert_equal [3, "other.rb"], [load({ config: "other.rb" }).port, load({}, { "HEDDLE_CONFIG" => "other.rb" }).file]
    assert_equal [9_292, nil], [load({ config: "-" }).port, load(file: nil).file]
    assert_match(/\Athe configuration file .*gone\.rb \(--config\) does not exist\z/,
                 assert_raises(Wrong) { load({ config: "gone.rb" }) }.message)
  end

  def test_the_environment_can_be_asked_for
    write("stop_timeout environment == 'production' ? 60 : 1")

    assert_equal [1, 60, 60], [{}, { "RAILS_ENV" => "production" }, { "RACK_ENV" => "production" }]
      .map { |environment| load({}, environment).stop_timeout }
    assert_equal 60, load({ environment: "production" }, { "RAILS_ENV" => "test" }).stop_timeout
    write("environment 'production'\nstop_timeout environment == 'production' ? 60 : 1\n")

    assert_equal [60, 1], [{}, { "RAILS_ENV" => "test" }].map { |environment| load({}, environment).stop_timeout }
  end

  def test_all_errors_are_reported_with_their_lines
    assert_equal ["config/heddle.rb:1: there is no option prot. Did you mean port?",
                  "config/heddle.rb:2: stop_timeout must be a number of seconds, but is \"soon\"",
                  "config/heddle.rb:4: port must be from 0 to 65535, but is 70000",
                  "config/heddle.rb:5: mode must be fiber, thread, single or ractor, but is :fibre. " \
                  "Did you mean fiber?",
                  "config/heddle.rb:6: port takes one value, as in: port 3000",
                  "config/heddle.rb:7: access_log must be on or off, but is nil"],
                 problems(<<~RUBY)
                   prot 3000
                   stop_timeout "soon"

                   port 70_000
                   mode :fibre
                   port 1, 2
                   access_log nil
                 RUBY
  end

  def test_an_assignment_to_an_option_is_reported
    assert_equal ["config/heddle.rb:2: port = … sets a variable, not an option. Write it without the =, as in: " \
                  "port 3000"], problems("max_requests 5\nport = 3000\n")
    assert_equal ["config/heddle.rb:1: there is no option prot. Did you mean port?"], problems("self.prot = 3000")
  end

  def test_an_error_in_the_file_has_its_line_and_no_backtrace
    assert_equal ["config/heddle.rb:2: RuntimeError: no database"], problems("port 1\nraise 'no database'")
    assert_equal ["config/heddle.rb:1: NameError: uninitialized constant Nothing"],
                 problems("Nothing")
    assert_equal ["config/heddle.rb:1: config can't be set here. Use --config or HEDDLE_CONFIG"],
                 problems("config 'x'")
    assert_equal "config/heddle.rb:3: syntax error:", problems("port 1\n\nbind [}\n").first[/\A.*? error:/]
  end

  def test_a_file_that_ends_the_process_is_reported
    { "exit" => 0, "exit 3" => 3, "abort" => 1, "raise SystemExit" => 0 }.each do |code, status|
      assert_equal ["config/heddle.rb:2: the file ended the process, with status #{status}"],
                   problems("port 1\n#{code}")
    end
  end

  def test_bytes_that_are_no_text_and_what_a_terminal_obeys_are_shown
    assert_match(%r{\Aconfig/heddle\.rb:2: syntax error: }, problems("port 1\nbind '\xFF\n").first)
    assert_equal "  port (3000", problems("port 1\nport (3000\n").last
    assert_equal ["config/heddle.rb:1: RuntimeError: \\x1B[2J\\xFE"], problems("raise \"\\e[2J\\xFE\\nb\"")
  end

  def test_the_file_sees_nothing_of_heddle_but_its_options
    write("Server = 1\nport Server\nstop_timeout defined?(Configuration) ? 1 : 2\ndef helper = 7\nthreads helper\n")
    2.times do
      assert_silent { assert_equal [1, 2, 7], load.then { |found| [found.port, found.stop_timeout, found.threads] } }
    end
  end

  def test_a_missing_file_in_a_folder_whose_name_is_not_utf8_is_reported_in_utf8
    error = assert_raises(Heddle::Server::ConfigurationError) do
      Heddle::Server::Configuration.load(environment: {}, flags: { config: "a.rb" }, folder: "/caf\xE9")
    end

    assert_equal "the configuration file /caf\\xE9/a.rb (--config) does not exist", error.message
  end

  def test_options_that_need_a_restart_are_listed
    write("port 1\nstop_timeout 1\n")
    before = load
    write("port 2\nstop_timeout 2\nlog_level :warn\nlog_format :json\nlog_file 'a'\naccess_log false\ncontrol :off\n")

    assert_equal [%i[port control access_log log_format log_level log_file], []],
                 [before.needing_restart(before.reload), before.needing_restart(before)]
  end

  def test_hooks_are_blocks_that_run_later
    write("number = 5\nworker_boot { |index| [:first, index + number] }\nworker_boot { :second }\n")
    hooks = load.hooks

    assert_equal [:worker_boot], hooks.names
    assert_equal [[:first, 7], :second], hooks[:worker_boot].map { |block| block.call(2) }
    assert_empty hooks[:worker_stop]
    assert_predicate hooks, :frozen?
    assert_equal ["config/heddle.rb:1: worker_boot takes a block and nothing else, as in: worker_boot { … }",
                  "config/heddle.rb:2: there is no option worker_bot. Did you mean worker_boot?"],
                 problems("worker_boot 5\nworker_bot { }\n")
  end

  def test_reload_reads_the_file_again_and_leaves_the_old_configuration_alone
    write("port 1")
    before = load({ max_requests: "5" })
    write("port 2")
    after = before.reload

    assert_equal [1, 2, 5], [before.port, after.port, after.max_requests]
    write("prot 3")

    assert_match(/config.heddle\.rb:1: there is no option prot/, assert_raises(Wrong) { after.reload }.message)
    assert_equal 2, after.port
    write("port 4")

    assert_equal 4, after.reload.port
  end

  def test_an_option_in_a_block_that_runs_later_is_refused
    write("later = -> { port 5 }\nObject.const_set(:HeddleTestLater, later)\n")
    load
    error = assert_raises(Wrong) { HeddleTestLater.call }

    assert_equal "port is set in a block that runs later (config/heddle.rb:1): set it outside of blocks", error.message
  ensure
    Object.send(:remove_const, :HeddleTestLater)
  end
end
