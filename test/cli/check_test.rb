# frozen_string_literal: true

require "test_helper"
require "support/served_process"
require "open3"
require_relative "application_folder"

# `heddle check`, run as a command.
class CheckTest < Minitest::Test
  include ApplicationFolder

  # Nothing of the machine that runs the tests.
  CLEAN = %w[PORT WEB_CONCURRENCY RAILS_MAX_THREADS RAILS_ENV APP_ENV RACK_ENV PIDFILE HEDDLE_SELECTOR]
          .to_h { |name| [name, nil] }.freeze

  def check(*arguments, **environment)
    environment = CLEAN.merge(environment.transform_keys(&:to_s))
    output, errors, status = Open3.capture3(environment, *ServedProcess::HEDDLE, "check", *arguments, chdir: @folder)

    assert_empty errors.lines.grep_v(/\AIgnoring |\Ahello\n/)
    [status.exitstatus, output]
  end

  def test_check_prints_every_value_and_its_source_in_columns
    write("config/heddle.rb", "stop_timeout 20\n\nmax_requests 64\n")
    status, output = check("--queue-limit", "7", PORT: "3000", HEDDLE_MAX_REQUESTS: "65")
    rows = output.lines(chomp: true).grep(/\A  \S/).map { |line| line.split(/ {2,}/).drop(1) }

    assert_equal 0, status, output
    { "stop_timeout" => ["20 s", "config/heddle.rb:1"], "port" => %w[3000 PORT],
      "max_requests" => %w[65 HEDDLE_MAX_REQUESTS],
      "queue_limit" => %w[7 --queue-limit], "head_timeout" => ["10 s", "default"], "bind" => %w[localhost default] }
      .each { |name, expected| assert_includes rows, [name, *expected] }
    long, others = output.lines.grep(/ default$/).partition { |line| line.start_with?("  adapt ") }

    assert_equal 1, others.map { |line| line.rindex("default") }.uniq.size
    assert_operator others.map(&:size).max, :<, 80, "one long value does not widen the other rows"
    assert_equal 1, long.size
    assert_match(/^configuration file: config.heddle\.rb$/, output)
    assert_match(/^The configuration is valid\.$/, output)
  end

  def test_check_prints_only_values_that_differ_from_defaults
    write("config/heddle.rb", "stop_timeout 20\nmax_requests 64\nworker_boot { }\n")
    status, output = check("--changed", "--queue-limit", "7", PORT: "3000")

    assert_equal 0, status, output
    assert_equal %w[option stop_timeout port max_requests queue_limit], output.scan(/^  (\w+)/).flatten
    assert_match(/^hooks: worker_boot$/, output)
  end

  def test_check_reports_a_file_that_sets_nothing
    write("config/heddle.rb", "# nothing yet\n")
    _, output = check("--changed")

    assert_match(/\AEvery option has its default value\.$/, output)
    assert_match(/^configuration file: config.heddle\.rb$/, output)
  end

  def test_all_configuration_errors_are_reported_together
    write("config/heddle.rb", "prot 3000\nmax_requests -1\n")
    status, output = check("--stop-timeout", "soon", WEB_CONCURRENCY: "many")

    assert_equal 1, status
    assert_equal ["heddle: --stop-timeout must be a number of seconds, but is \"soon\"",
                  "heddle: WEB_CONCURRENCY must be auto or a whole number, but is \"many\"",
                  "heddle: config/heddle.rb:1: there is no option prot. Did you mean port?",
                  "heddle: config/heddle.rb:2: max_requests must be from 0 to 1000000, but is -1"],
                 output.lines(chomp: true).sort
  end

  def test_a_path_without_a_name_is_rejected
    assert_equal [1, "heddle: --pidfile must be a path, but is \"\"\n"], check("--pidfile=")
  end

  def test_a_variable_whose_name_is_not_utf8_is_ignored
    output, errors, status = Open3.capture3({ **CLEAN, "F\xFF" => "1", "HEDDLE_\xFF" => "1" }, *ServedProcess::HEDDLE,
                                            "check", "--changed", chdir: @folder)

    assert_equal 0, status.exitstatus, output + errors
  end

  def test_invalid_utf8_is_rejected
    _, errors, status = Open3.capture3(CLEAN, *ServedProcess::HEDDLE, "check", "--pidfile=\xFF", chdir: @folder)

    assert_equal 2, status.exitstatus
    assert_match(/^heddle: the argument "--pidfile=\\xFF" is not UTF-8/, errors)
    write("config/heddle.rb", %(pidfile "\\xFF"\nbind "a\\0b"\n))
    status, output = check

    assert_equal 1, status
    assert_match(%r{config/heddle\.rb:1: pidfile must be a path, but is "\\xFF"}, output)
    assert_match(%r{config/heddle\.rb:2: bind must be one or more words, but is "a\\u0000b"}, output)
  end

  def test_addresses_that_cannot_be_listened_on
    status, output = check("--bind", "unix:/nonexistent/x", "--bind", "no-such-host.invalid:80")

    assert_equal 1, status
    assert_match(%r{can't listen on unix:/nonexistent/x: the folder /nonexistent does not exist}, output)
    assert_match(/can't listen on no-such-host\.invalid: no address was found for that host name/, output)
    write("config/heddle.rb", "\nbind 'a:b'")

    assert_match(/^heddle: config.heddle\.rb:2: bind must be .*"a:b"$/, check.last)
  end

  def test_a_wrong_address_is_reported_with_its_line
    write("config/heddle.rb", "bind 'localhost:0'\nbind 'unix:x?backlg=1', 'localhost:1'\nbind 'localhost:2'")

    assert_match(/^heddle: config.heddle\.rb:2: bind unix:x\?backlg=1: unknown parameter "backlg"/, check.last)
    write("config/heddle.rb", "bind 'a:b'\nbind 'localhost:2'")

    assert_match(/^heddle: config.heddle\.rb:1: bind must be .*"a:b"$/, check.last)
  end

  def test_missing_machine_features_are_reported
    write("config/heddle.rb", "selector :poll\npidfile 'config.ru/pids/x.pid'")
    status, output = check

    assert_equal 1, status
    assert_match(%r{^heddle: selector \(config/heddle\.rb:1\) is :poll, but this build of Heddle supports only },
                 output)
    assert_match(%r{^heddle: can't write the pidfile .*config\.ru/pids/x\.pid: .*config\.ru is not a folder$}, output)
  end

  def test_the_application_is_checked_and_loaded_on_request
    FileUtils.rm(File.join(@folder, "config.ru"))

    assert_match(/there is no file config\.ru/, check.last)
    write("other.ru", "run do\n [}\nend")

    assert_equal [1, true], check("other.ru").then { |status, output| [status, output.include?("syntax error")] }
    write("other.ru", "raise 'no database'")

    assert_equal 0, check("other.ru").first
    status, output = check("other.ru", "--load")

    assert_equal [1, true], [status, output.include?("RuntimeError: no database")]
    write("config.ru", "puts 'hello'\nraise ENV['RACK_ENV'] unless ENV['RACK_ENV'] == 'test'\nrun ->(env) { }")
    status, output = check("--load", "-e", "test")

    assert_equal [0, true, false],
                 [status, output.include?("config.ru, which can be loaded"), output.include?("hello")], output
  end

  def test_an_application_that_ractors_cannot_share_is_reported_in_mode_ractor
    write("config.ru", "run ->(_env) { [200, {}, []] }")
    status, output = check("--load", "--mode", "ractor")

    assert_equal 1, status
    assert_match(/^heddle: mode ractor: Ractors can't share this application\..*config\.ru:1\), and Ruby can't/m,
                 output)
  end

  def test_a_file_is_utf_8_whatever_the_locale
    write("config/heddle.rb", "# für alle\nbind 'ä'\nport 'ö'\n")
    status, output = check(LC_ALL: "C", LANG: "C")

    assert_equal 1, status
    assert_includes output, "config/heddle.rb:3: port must be a whole number, but is"
    refute_includes output, "syntax error"
  end

  def test_an_unused_port_option_is_reported
    write("config/heddle.rb", "bind '127.0.0.1:3000', 'localhost:3001'")
    told = "port 4000 (PORT) has no effect: each address of bind (config/heddle.rb:1) has its own port"

    assert_includes check(PORT: "4000").last, "heddle: #{told}\n"
    refute_includes check.last, "counts for no"
    write("config/heddle.rb", "bind '127.0.0.1:3000', 'localhost'")

    refute_includes check(PORT: "4000").last, "counts for no"
  end

  def test_unknown_environment_variables_are_reported
    status, output = check(HEDDLE_STOP_TIMOUT: "3", RAILS_MAX_THREADS: "5", HEDDLE_RUBY: "ruby", HEDDLE_TEST_X: "1")

    assert_equal 0, status
    assert_equal ["heddle: the environment variable HEDDLE_STOP_TIMOUT has no effect. Did you mean " \
                  "HEDDLE_STOP_TIMEOUT?",
                  "heddle: RAILS_MAX_THREADS is 5, but has no effect: it sets threads only with mode thread"],
                 output.lines(chomp: true).grep(/\Aheddle: /)
  end
end
