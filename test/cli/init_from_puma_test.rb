# frozen_string_literal: true

require "test_helper"
require "heddle/cli"
require "heddle/server"
require "fileutils"
require "open3"
require "stringio"
require "tmpdir"

# `heddle init --from config/puma.rb`.
class InitFromPumaTest < Minitest::Test
  def setup
    @folder = File.realpath(Dir.mktmpdir)
    @before = Dir.pwd
    Dir.chdir(@folder)
    Dir.mkdir("config")
  end

  def teardown
    Dir.chdir(@before)
    FileUtils.remove_entry(@folder)
  end

  def carry_over(text, status: 0)
    result, output, errors = init(text, "--force")

    assert_equal [status, ""], [result, errors], output
    output
  end

  # @return [Array(Integer, String, String)] the exit status and what was printed
  def init(text, *flags)
    File.write("config/puma.rb", text)
    output = StringIO.new
    errors = StringIO.new
    status = Heddle::CLI.run(["init", "--from", "config/puma.rb", *flags], output:, errors:)
    [status, output.string, errors.string]
  end

  def with_environment(variables)
    before = ENV.to_h
    ENV.update(variables)
    yield
  ensure
    ENV.replace(before)
  end

  # What of the new file is no comment.
  def code = File.readlines("config/heddle.rb", chomp: true).grep_v(/\A(?:#|\s*\z)/)

  def configuration(environment = {}) = Heddle::Server::Configuration.load(environment:, folder: @folder)

  # The reasons, by line.
  def left(report)
    report[/^Not translated:\n(.*?)(?:\n\n|\z)/m, 1].to_s.scan(/^ +(\d+)  .*\n +→ (.*)$/)
                                                    .to_h { |line, why| [line.to_i, why] }
  end

  def rails_template
    gem = Gem::Specification.find_all_by_name("railties").max_by(&:version)
    skip "needs the gem railties: bin/setup" unless gem
    File.read(File.join(gem.full_gem_path, "lib/rails/generators/rails/app/templates/config/puma.rb.tt"))
        .gsub(/^<%.*%>\n/, "")
  end

  def test_the_puma_configuration_that_rails_generates_is_converted
    report = carry_over(rails_template)

    assert_equal ['bind "[::]"', "port 3000", "access_log false"], code
    assert_match(/plugin :solid_queue.*\n +→ Heddle reads SOLID_QUEUE_IN_PUMA itself/, report)
    assert_match(/threads threads_count.*\n +→ each process runs many requests at once in fibers/, report)
    assert_empty left(report)
    assert_match(/pidfile ENV\["PIDFILE"\].*\n +→ Heddle reads PIDFILE itself/, report)
    assert_match(/plugin :tmp_restart\n +→ with workers, .* when tmp.restart\.txt is touched; a single/, report)
    found = configuration({ "RAILS_MAX_THREADS" => "4", "PORT" => "4000" })

    assert_equal [:fiber, 1, ["[::]"], 4_000, []], [found.mode, found.threads, found.bind, found.port,
                                                    found.hooks.names]
    assert_empty Heddle::Protection.names - configuration.protections - %i[callback_report]
    assert configuration({ "SOLID_QUEUE_IN_PUMA" => "true" }).solid_queue
    carry_over("plugin :solid_queue\n")

    assert configuration.solid_queue
  end

  def test_a_comment_that_is_not_utf8_is_escaped
    carry_over("workers 3 # caf\xE9\n")

    assert_includes File.read("config/heddle.rb"), "# config/puma.rb:1: workers 3 # caf\\xE9\nworkers 3\n"
  end

  def test_hooks_run_at_the_same_step
    report = carry_over(<<~RUBY)
      before_fork { $heddle_test = [:fork] }
      on_worker_boot do |index|
        $heddle_test << index
      end
      before_worker_shutdown { |index| $heddle_test << index }
      on_stopped { }
      after_booted { $heddle_test << :booted }
      before_restart { $heddle_test << :restart }
    RUBY
    hooks = configuration.hooks

    assert_equal %i[after_mold worker_boot worker_stop on_booted on_restart], hooks.names
    hooks.run(:after_mold)
    hooks.run(:worker_boot, 7)
    hooks.run(:on_booted)
    hooks.run(:on_restart)
    hooks.run(:worker_stop, 7)

    assert_equal [:fork, 7, :booted, :restart, 7], $heddle_test
    assert_equal({ 6 => "Heddle has no hook at that step" }, left(report))
  end

  def test_variables_that_heddle_reads_are_not_frozen_into_the_file
    before = ENV.to_h.slice("PORT", "WEB_CONCURRENCY")
    ENV.update("PORT" => "4000", "WEB_CONCURRENCY" => "7")
    carry_over("port ENV.fetch('PORT') { 3000 }\nworkers ENV.fetch('WEB_CONCURRENCY', 2)\n" \
               "environment ENV['RACK_ENV']\nenvironment ENV.fetch('MY_APP_ENV', 'development')\n")

    assert_equal ["port 3000", "workers 2", "environment ENV.fetch('MY_APP_ENV', 'development')"],
                 code.grep(/port|workers|environment/)
    assert_equal "4000", ENV.fetch("PORT")
  ensure
    %w[PORT WEB_CONCURRENCY].each { |name| ENV[name] = before[name] }
  end

  def test_addresses
    report = carry_over(<<~RUBY)
      bind "tcp://127.0.0.1:3001"
      bind "unix:///run/app.sock?umask=0111&backlog=64"
      port 3002, "::1"
      bind "unix://@abstract"
      bind "fd://5"
      bind "unix:///run/a.sock?umask=x"
    RUBY

    assert_equal ['bind "127.0.0.1:3001"', 'bind "unix:/run/app.sock?mode=666"', 'bind "[::1]"', "port 3002"],
                 code.grep(/bind|port/)
    assert_equal [4, 5, 6], left(report).keys
    assert_match(/backlog is left out/, report)
  end

  # Puma's are open to all users without a mask, so that a proxy of another user can connect.
  def test_the_file_of_a_unix_socket_has_the_permissions_that_puma_gives_it
    { "" => 777, "?umask=0117" => 660, "?mode=0640" => 640, "?mode=600&umask=0" => 600,
      "?umask=63" => 700 }.each do |parameters, mode| # 63 is 077
      carry_over(%(bind "unix:///run/app.sock#{parameters}"\n))

      assert_equal [%(bind "unix:/run/app.sock?mode=#{mode}")], code.grep(/bind/)
    end
  end

  def test_pumas_default_address_is_bound_when_a_bind_is_not_converted
    report = carry_over(<<~RUBY)
      socket = nil
      bind "unix:///run/app.sock" if socket
      quiet false if socket
    RUBY

    assert_equal ['bind "[::]"', "access_log false"], code
    assert_equal [2, 3], left(report).keys
  end

  # @param default [String] what `rails server` gives
  def address_under_rails_server(default)
    program = 'module Rails; Server = Class.new; end; require "heddle/server"; ' \
              "puts Heddle::Server::Configuration.load(environment: {}, defaults: { bind: ARGV }).bind"
    output, status = Open3.capture2e(RbConfig.ruby, "-I#{@before}/lib", "-e", program, default, chdir: @folder)

    assert_predicate status, :success?, output
    output.chomp
  end

  # Puma takes the host of `rails server` for a port without one.
  def test_rails_server_chooses_the_address_that_pumas_file_leaves_open
    Dir.mkdir("bin")
    File.write("bin/rails", "")
    ["port 3000\n", "quiet\n"].each do |text|
      carry_over(text)

      assert_equal ["[::]"], configuration.bind
      assert_equal "localhost", address_under_rails_server("localhost")
    end
    carry_over(%(port 3000\nbind "unix:///tmp/a.sock"\n))

    assert_equal "localhost\nunix:/tmp/a.sock?mode=777", address_under_rails_server("localhost")
    carry_over(%(port 3000, "::1"\n))

    assert_equal 'bind "[::1]"', code.first
  end

  def test_early_hints_are_converted
    report = carry_over("early_hints\nearly_hints true\nearly_hints false\n")

    assert_equal ["early_hints :on"], code.grep(/early/).uniq
    assert_equal :on, configuration.early_hints
    assert_match(/early_hints false\n +→ early hints are off/, report)
  end

  def test_certificates_are_converted
    report = carry_over(<<~RUBY)
      ssl_bind "::1", 3443, cert: "config/a&b.pem", key: "config/b.pem", verify_mode: "peer"
      bind "ssl://0.0.0.0:3444?key=/keys/b.pem&cert=a.pem&no_tlsv1=true"
      ssl_bind "127.0.0.1", "3445"
      ssl_bind "127.0.0.1", 3446, cert: "a.pem", key: "b.pem", verify_mode: "force_peer", ca: "/keys/ca.pem"
      bind "ssl://127.0.0.1:3447?cert=a.pem&key=b.pem&verify_mode=none"
      bind_to_activated_sockets
    RUBY

    assert_equal ['bind "tls://0.0.0.0:3444?cert=a.pem&key=/keys/b.pem"', 'bind "tls://127.0.0.1:3445"',
                  'bind "tls://127.0.0.1:3446?cert=a.pem&key=b.pem&verify=required&ca=/keys/ca.pem"',
                  'bind "tls://127.0.0.1:3447?cert=a.pem&key=b.pem"', 'bind "systemd"'], code.grep(/bind/)
    assert_match(/verify_mode needs ca/, left(report)[1])
    assert_match(/no_tlsv1 is left out/, report)
  end

  def test_conditions_are_kept_or_reported
    report = carry_over(<<~RUBY)
      big = ENV["BIG"]
      persistent_timeout 33 if ENV["HEDDLE_TEST_NEVER"] == "1"
      if ENV["RAILS_ENV"] == "production"
        force_shutdown_after 50
      else
        force_shutdown_after 1
      end
      first_data_timeout 9 unless big
      first_data_timeout 99 if big
      plugin :something if ENV["SOMETHING"]
    RUBY

    assert_equal ['idle_timeout 33 if ENV["HEDDLE_TEST_NEVER"] == "1"',
                  'stop_timeout 50 if ENV["RAILS_ENV"] == "production"',
                  'stop_timeout 1 if !(ENV["RAILS_ENV"] == "production")', "head_timeout 9"],
                 code.grep(/timeout/)
    assert_equal [9, 10], left(report).keys
    assert_equal 75, configuration.http.idle_timeout
    assert_equal 1, configuration.stop_timeout
  end

  # As in the file that Hanami generates.
  def test_variables_of_the_application_are_read_when_heddle_starts
    carry_over(<<~RUBY)
      count = Integer(ENV.fetch("HEDDLE_TEST_COUNT", 3))
      workers count
      port ENV.fetch("HEDDLE_TEST_PORT") { 4000 }
      worker_timeout ENV["HEDDLE_TEST_TIMEOUT"] || 44
      http_content_length_limit ENV.fetch("HEDDLE_TEST_SIZE", count)
    RUBY

    assert_equal ['workers Integer(ENV.fetch("HEDDLE_TEST_COUNT", 3))',
                  'port ENV.fetch("HEDDLE_TEST_PORT") { 4000 }',
                  'worker_timeout ENV["HEDDLE_TEST_TIMEOUT"] || 44', "body_limit 3"],
                 code.grep(/^(workers|port|worker_timeout|body_limit)/)
  end

  # Puma accepts nil as a value, Heddle does not.
  def test_variables_without_a_default_may_be_unset_when_heddle_starts
    with_environment("HEDDLE_TEST_COUNT" => "2", "HEDDLE_TEST_PORT" => "4000") do
      carry_over("workers ENV['HEDDLE_TEST_COUNT'] if ENV['RACK_ENV'] != 'x'\nport ENV['HEDDLE_TEST_PORT']\n")

      assert_equal [2, 4000], [configuration.workers, configuration.port]
    end

    assert_equal [1, 9292], [configuration.workers, configuration.port]
  end

  def test_values_that_other_addresses_take_from_the_environment_are_said_to_be_frozen
    carry_over("port ENV.fetch('HEDDLE_TEST_PORT', 4000)\nport ENV.fetch('HEDDLE_TEST_SECOND', 4001)\n" \
               "ssl_bind ENV.fetch('HEDDLE_TEST_HOST', '127.0.0.1'), 4002, { cert: 'a', key: 'b' }\n")

    assert_equal 2, File.read("config/heddle.rb").scan(/^# Puma's file computes this value/).size
  end

  def test_values_that_an_address_or_one_thread_takes_from_the_environment_are_said_to_be_frozen
    carry_over("bind ENV.fetch('HEDDLE_TEST_BIND', 'tcp://0.0.0.0:4001')\n" \
               "threads ENV.fetch('HEDDLE_TEST_THREADS', 1)\n")

    assert_equal ['bind "0.0.0.0:4001"', "max_requests 1"], code.grep(/^(bind|max_requests)/)
    assert_equal 2, File.read("config/heddle.rb").scan(/^# Puma's file computes this value/).size
  end

  # As in the file that Rails 7.1 generates: development must not get production's workers.
  def test_conditions_that_can_be_computed_stay_beside_one_that_can_not
    with_environment("RAILS_ENV" => "production") do
      carry_over(<<~RUBY)
        if ENV["RAILS_ENV"] == "production"
          worker_count = Integer(ENV.fetch("HEDDLE_TEST_COUNT") { 4 })
          workers worker_count if worker_count > 1
        end
      RUBY
    end

    assert_equal ['workers Integer(ENV.fetch("HEDDLE_TEST_COUNT") { 4 }) if ENV["RAILS_ENV"] == "production"'],
                 code.grep(/workers/)
  end

  def test_a_setting_in_a_loop_or_a_case_is_reported
    report = carry_over(<<~RUBY)
      case ENV["HEDDLE_TEST_SIZE"]
      when "large" then workers 8
      end
      [3001, 3002].each { |port| persistent_timeout port }
    RUBY

    assert_equal [2, 4], left(report).keys
    assert_match(/it is inside of a loop, a method or another block/, left(report)[4])
    assert_empty code.grep(/workers|timeout/)
  end

  # The number of one machine would be wrong on another.
  def test_the_number_of_processors_stays_that_of_the_machine_that_serves
    ["workers Etc.nprocessors", 'workers ENV.fetch("WEB_CONCURRENCY") { Concurrent.physical_processor_count }',
     "count = Integer(ENV.fetch('WEB_CONCURRENCY') { Etc.nprocessors })\nworkers count"].each do |text|
      carry_over(text)

      assert_equal ["workers :auto"], code.grep(/workers/), text
    end
    carry_over("unless ENV['HEDDLE_TEST_ONE']\n  count = Etc.nprocessors\n  workers count\nend\n")

    assert_equal ["workers :auto if !(ENV['HEDDLE_TEST_ONE'])"], code.grep(/workers/)
    report = carry_over("workers [Etc.nprocessors, 3].min\n")

    assert_equal ["workers #{[Etc.nprocessors, 3].min}"], code.grep(/workers/)
    assert_match(/Puma's file computes this value; this was the result when heddle init ran/, report)
  end

  def test_a_value_that_needs_a_variable_which_is_not_set_is_reported_where_its_condition_does_not_hold
    report = carry_over(<<~'RUBY')
      path = ENV["HEDDLE_TEST_PATH"]
      if ENV["HEDDLE_TEST_PATH"]
        bind "unix://#{ENV["HEDDLE_TEST_PATH"]}"
        bind "unix://#{path}?mode=0600"
        bind "unix://#{ENV.fetch("HEDDLE_TEST_PATH")}"
      else
        bind "tcp://127.0.0.1:#{ENV["HEDDLE_TEST_NONE"] || 3000}"
      end
      workers ENV["HEDDLE_TEST_WORKERS"].to_i if ENV["HEDDLE_TEST_WORKERS"]
    RUBY
    needs = "its value needs the variable %s: set it and run `heddle init` again, or write the line yourself"

    assert_equal({ 3 => format(needs, "HEDDLE_TEST_PATH"), 4 => format(needs, "HEDDLE_TEST_PATH"),
                   5 => format(needs, "HEDDLE_TEST_PATH"), 9 => format(needs, "HEDDLE_TEST_WORKERS") }, left(report))
    assert_equal ['bind "127.0.0.1:3000" if !(ENV["HEDDLE_TEST_PATH"])', "access_log false"], code
  end

  def test_a_require_keeps_its_condition
    report = carry_over(<<~RUBY)
      if ENV["HEDDLE_TEST_METRICS"] == "true"
        require "heddle_test_metrics"
        before_fork { HeddleTestMetrics.start }
      end
      unless Concurrent.processor_count > 1_000
        require "etc"
        persistent_timeout 20
      end
    RUBY

    assert_equal ['require "heddle_test_metrics" if ENV["HEDDLE_TEST_METRICS"] == "true"',
                  'after_mold { HeddleTestMetrics.start } if ENV["HEDDLE_TEST_METRICS"] == "true"',
                  "idle_timeout 20", "access_log false"], code.grep_v(/bind/)
    assert_equal({ 6 => "its condition can't be computed in the new file" }, left(report))
    configuration
  end

  def test_every_method_of_pumas_dsl_is_handled
    words = Heddle::CLI::InitCommand::PumaSettings
    report = carry_over([*words::NEEDLESS.keys, *words::UNTRANSLATED.keys].map { |name| "#{name}\n" }.join)

    assert_equal words::UNTRANSLATED.keys.size - 1, left(report).size, "enable_keep_alives means true"
    words::NEEDLESS.each { |name, why| assert_match(/^ +\d+  #{name}\n +→ #{Regexp.escape(why)}$/, report) }
    words::UNTRANSLATED.each { |name, why| assert_match(/^ +\d+  #{name}\n +→ #{Regexp.escape(why)}$/, report) }
  end

  # What Puma itself calls, and no file.
  INTERNAL = %i[initialize _load_from _offer_plugins default_host inject get].freeze

  def test_values_that_are_what_heddle_does_anyway_are_not_reported_as_not_translated
    values = { "enable_keep_alives" => %w[true false], "supported_http_methods" => [":any", "%w[GET]"],
               "max_keep_alive" => %w[Float::INFINITY 100], "idle_timeout" => %w[nil 60],
               "shutdown_debug" => %w[false true], "io_selector_backend" => %w[:auto :epoll],
               "worker_boot_timeout" => %w[60 5] }
    usual, others = values.map { |name, (one, other)| ["#{name} #{one}", "#{name} #{other}"] }.transpose

    assert_empty left(carry_over(usual.join("\n")))
    assert_equal (1..7).to_a, left(carry_over(others.join("\n"))).keys
  end

  def test_every_method_of_the_installed_pumas_dsl_is_known
    gem = Gem::Specification.find_all_by_name("puma").max_by(&:version)
    skip "needs the gem puma: bin/setup" unless gem
    text = File.read(File.join(gem.full_gem_path, "lib/puma/dsl.rb"))[/\A.*?^    private$/m]
    found = text.scan(/^    (?:def|alias_method|alias) :?(?!self\b)(\w+!?)/).flatten.map(&:to_sym)

    assert_operator found.size, :>, 80
    assert_empty found - INTERNAL - Heddle::CLI::InitCommand::PumaSettings::NAMES
  end

  def test_settings_in_a_cluster_block_are_converted_and_those_of_a_single_block_are_not
    report = carry_over(<<~RUBY)
      cluster do
        worker_timeout 77
        if ENV["HEDDLE_TEST_NEVER"]
          persistent_timeout 33
        end
        before_fork { $heddle_test = 1 }
      end
      single do
        worker_timeout 5
      end
    RUBY

    assert_equal ["worker_timeout 77", 'idle_timeout 33 if ENV["HEDDLE_TEST_NEVER"]',
                  "after_mold { $heddle_test = 1 }"], code.grep(/timeout|after_mold/)
    assert_equal({ 8 => "the settings in its block are for a Puma without workers" }, left(report))
  end

  def test_a_plugin_is_left_out_with_what_runs_in_its_place
    report = carry_over("plugin :tailwindcss\nplugin :heroku\nplugin :systemd\n")

    assert_equal "Heddle has no plugins, and no equivalent of tailwindcss: run bin/rails tailwindcss:watch in " \
                 "another process, as bin/dev does", left(report)[1]
    assert_equal "Heddle has no plugins, and no equivalent of heroku", left(report)[2]
    assert_match(/Not needed.*plugin :systemd\n +→ Heddle notifies systemd itself$/m, report)
  end

  def test_constants_of_the_file_are_not_heddles
    report = carry_over("workers 3\nport Server::PORT\n", status: 1)

    assert_match(/uninitialized constant Server$/, report)
  end

  def test_unknown_methods_are_reported
    report = carry_over("port 3000\nsome_plugin_word 5\npersistent_timeout 5\n")

    assert_equal({ 2 => "heddle init does not know this setting of Puma" }, left(report))
    assert_includes code, "idle_timeout 5"
  end

  def test_nothing_is_written_when_a_line_cannot_be_run
    status, output, errors = init("port 3000\nworkers ENV.fetch('HEDDLE_TEST_NONE')\npersistent_timeout 5\n")

    refute_equal 0, status
    assert_empty output
    assert_match(%r{^heddle: config/puma\.rb:2: KeyError: key not found: "HEDDLE_TEST_NONE"$}, errors)
    assert_match(%r{^heddle: config/heddle\.rb was not written}, errors)
    refute_path_exists "config/heddle.rb"
  end

  def test_values_of_a_wrong_type_are_reported_with_their_lines
    output = carry_over(<<~RUBY)
      workers Float::NAN
      threads Object.new, 5
      pidfile "x".encode("UTF-16LE")
      plugin "\\xFF"
    RUBY

    (1..4).each { |line| assert_match(/^ +#{line}  /, output) }
    assert_equal 3, output.scan("heddle init can't translate the arguments of this setting").size
    assert_includes output, "no equivalent of \\xFF"
  end

  def test_a_file_that_exits_is_reported
    status, output, errors = init("workers 2\nabort\n")

    assert_equal [2, ""], [status, output]
    assert_includes errors, "config/puma.rb:2: the file ends the program here, with status 1"
    refute_path_exists "config/heddle.rb"
  end

  def test_messages_of_the_file_are_escaped_for_the_terminal
    _, _, errors = init("raise %(a\\e[31mb)\n")

    assert_includes errors, 'RuntimeError: a\x1B[31mb'
  end

  def test_messages_of_the_file_may_be_in_any_encoding
    _, _, errors = init(<<~'RUBY')
      raise "\xFF"
      raise "p\u00F6rt\nmore".encode("UTF-16LE")
      raise Class.new(StandardError) { def message = raise(NotImplementedError) }
    RUBY

    assert_includes errors, 'puma.rb:1: RuntimeError: \xFF'
    assert_match(/puma.rb:2: RuntimeError: p\u00F6rt$/, errors)
    assert_match(/puma.rb:3: .*: \(no message: message raised NotImplementedError\)$/, errors)
  end

  def test_an_address_without_a_host_listens_on_every_address_of_ipv4
    { "tcp://:3000" => "0.0.0.0:3000", "tcp://" => "0.0.0.0", "tcp://:" => "0.0.0.0", "tcp://[::]:3000/" => "[::]:3000",
      "ssl://:3001?cert=a&key=b" => "tls://0.0.0.0:3001?cert=a&key=b" }.each do |url, address|
      carry_over("bind #{url.inspect}\n")

      assert_includes File.read("config/heddle.rb"), "bind #{address.inspect}\n"
    end
    carry_over("bind \"tcp://:\#{ENV.fetch('PORT', 4000)}\"\n")

    assert_match(/^bind "0.0.0.0"\nport 4000$/, File.read("config/heddle.rb"))
    carry_over('port 3000, ""')

    assert_match(/^bind "0.0.0.0"\nport 3000$/, File.read("config/heddle.rb"))
  end

  def test_a_forced_conversion_says_so_at_the_top_and_converts_the_remaining_lines
    report = carry_over("port 3000\nsize = Vault.size\nworkers size\nraise 'no vault'\npersistent_timeout 5\n",
                        status: 1)
    top = File.read("config/heddle.rb")[/\A.*?\n\n.*?\n\n/m]

    assert_match(/INCOMPLETE.*puma\.rb:2: NameError: uninitialized constant Vault\n.*puma\.rb:4: Runtime/m, top)
    assert_match(/is incomplete: /, report)
    assert_equal "its value can't be computed", left(report)[3]
    assert_includes code, "idle_timeout 5"
  end

  def test_the_file_is_run_in_the_environment_that_is_there
    before = ENV.to_h
    with_environment("RAILS_ENV" => "production", "PORT" => "4000") do
      carry_over(<<~RUBY)
        workers(ENV.fetch("RAILS_ENV") == "production" ? 4 : 0)
        environment ENV.fetch("RAILS_ENV")
        port ENV.fetch("PORT")
        stop = ENV.fetch("PORT").to_i / 100
        worker_shutdown_timeout stop
        persistent_timeout 7 if Rails.env.production?
        ENV["HEDDLE_TEST_SET"] = "here"
      RUBY
    end

    assert_equal ["workers 4", "stop_timeout 40", 'idle_timeout 7 if (environment == "production")'],
                 code.grep(/workers|port|environment|timeout/)
    assert_equal before, ENV.to_h
    assert_equal 7, configuration({ "RAILS_ENV" => "production" }).http.idle_timeout
  end

  # Rails asks RAILS_ENV before, and Puma has set RACK_ENV by then.
  def test_rails_env_is_what_any_of_the_variables_says
    %w[RAILS_ENV APP_ENV RACK_ENV].each do |name|
      with_environment("RAILS_ENV" => nil, "APP_ENV" => nil, "RACK_ENV" => "production", name => "staging") do
        carry_over("workers(Rails.env.staging? ? 3 : 2)\n")
      end

      assert_includes code, "workers 3", name
    end
  end

  # As Campfire's does.
  APPLICATION_FIRST = <<~RUBY
    require File.expand_path("../config/environment", __dir__)

    workers ENV.fetch("WEB_CONCURRENCY") { count = (Concurrent.processor_count * 0.5).ceil }
    ENV["JOB_CONCURRENCY"] ||= "3"
    threads 4
    if ENV["RAILS_ENV"]
      threads 5
      Membership.purge
    end
    Membership.disconnect_all

    Signal.trap :PROF do
      puts "profile"
    end
    def helper = 5
    require_relative "helpers"
  RUBY

  def test_the_application_is_not_loaded_and_every_line_is_named
    File.write("config/environment.rb", "$heddle_test_booted = true")
    File.write("config/helpers.rb", "begin; require_relative 'environment'; rescue StandardError, LoadError; end")
    report = carry_over(APPLICATION_FIRST)

    assert_nil $heddle_test_booted
    assert_equal [1, 4, 8, 10, 12, 15, 16], left(report).keys
    assert_equal ["application"], left(report).values_at(1, 16).map { |why| why[/application/] }.uniq
    assert_match(/uninitialized constant Membership/, left(report)[10])
    assert_match(/Puma's file computes this value; this was the result when heddle init ran/, report)
    assert_includes %w[DEFAULT SYSTEM_DEFAULT], trap(:PROF, "DEFAULT")
    assert_equal [1, 4, 8, 10, 12, 15, 16],
                 File.read("config/heddle.rb")[/Not translated:.*/m].scan(/^# (\d+): /).flatten.map(&:to_i)
  end

  def test_one_thread_becomes_one_request_at_a_time_in_each_process
    report = carry_over("threads 1\n")

    assert_includes code, "max_requests 1"
    assert_equal [:fiber, 1], [configuration.mode, configuration.max_requests]
    assert_match(/may not be thread-safe\. Raise the number only after a review/, report)
    carry_over("threads 0, 1")

    assert_includes code, "max_requests 1"
    with_environment("RAILS_MAX_THREADS" => "1") do
      carry_over('threads ENV.fetch("RAILS_MAX_THREADS", 3), ENV.fetch("RAILS_MAX_THREADS", 3)')
    end

    assert_includes code, "max_requests 1"
    ["threads 2", "threads 0, 5", "threads 1, 3"].each do |line|
      carry_over(line)

      refute(code.any? { |one| one.match?(/max_requests|mode|threads/) }, line)
    end
  end

  def test_the_port_is_written_as_people_write_it
    carry_over("port 22_011\n")

    assert_includes code, "port 22011"
  end

  def settings_in(environment)
    found = configuration({ "RAILS_ENV" => environment })
    [found.workers, found.max_requests, found.stop_timeout]
  end

  def test_conditions_on_the_environment_hold_in_each_environment_wherever_init_runs
    %w[development production].each do |environment|
      with_environment("RAILS_ENV" => environment) do
        carry_over(<<~RUBY)
          unless Rails.env.local?
            workers 4
            threads 1, 1
          else
            force_shutdown_after Integer(ENV.fetch("HEDDLE_TEST_NONE", 3))
          end
          persistent_timeout 20 if Rails.env.production?
        RUBY
      end

      assert_equal [1, 0, 3], settings_in("development"), environment
      assert_equal [1, 0, 3], settings_in("test"), environment
      assert_equal [4, 1, 25], settings_in("production"), environment
      production = configuration({ "RAILS_ENV" => "production" })

      assert_equal [75, 20], [configuration, production].map { |one| one.http.idle_timeout }
    end
  end

  def test_calls_in_one_line_have_their_own_values
    { "ENV[\"BIG\"] ? workers(4) : workers(2)" => ["workers 4 if ENV[\"BIG\"]", "workers 2 if !(ENV[\"BIG\"])"],
      "if ENV[\"BIG\"] then workers 4 else workers 2 end" =>
        ["workers 4 if ENV[\"BIG\"]", "workers 2 if !(ENV[\"BIG\"])"],
      "bind \"tcp://127.0.0.1:1\"; bind \"tcp://127.0.0.1:2\"" =>
        ["bind \"127.0.0.1:1\"", "bind \"127.0.0.1:2\""] }.each do |line, expected|
      carry_over("#{line}\n")

      assert_equal expected, code.grep(/\A(?:workers |bind "127)/)
    end
  end

  def test_a_condition_that_needs_the_application_is_not_a_line_of_the_new_file
    report = carry_over(<<~RUBY, status: 1)
      workers 3 if Shop.large?
      if Rails.env.in?(%w[staging])
        persistent_timeout 20
      end
      force_shutdown_after 4 if defined?(Shop)
      first_data_timeout 9 unless Concurrent.processor_count > 1_000
    RUBY

    assert_equal [1, 3], left(report).keys
    assert_equal ["stop_timeout 4 if defined?(Shop)", "head_timeout 9"], code.grep(/workers|timeout/)
    %w[development test production].each { |name| configuration({ "RAILS_ENV" => name }) }
  end

  # Nothing would ever fulfil it in Heddle's file.
  def test_a_line_with_a_condition_that_asks_for_puma_is_reported
    report = carry_over("force_shutdown_after 4 if defined?(::Puma)\n")

    assert_equal [1], left(report).keys
    assert_empty code.grep(/Puma/)
  end

  def test_a_require_is_kept_when_converted_code_may_need_it
    carry_over("require 'etc'\nbefore_fork { Etc.nprocessors }\n")

    assert_includes code, "require 'etc'"
    assert_match(/require 'etc'\n +→ no translated line needs it/, carry_over("require 'etc'\nthreads 1\n"))
  end

  def test_a_block_that_calls_a_method_of_the_file_stays_behind
    report = carry_over("def nap = sleep(1)\non_worker_boot { nap }\n")

    assert_match(/uses nap, which only Puma's file defines/, left(report)[2])
  end

  def test_a_block_that_uses_a_constant_or_a_variable_of_the_file_stays_behind
    report = carry_over(<<~RUBY)
      MAIN = Process.pid
      @name = "shop"
      on_worker_boot { p MAIN }
      on_worker_boot { p @name }
      on_worker_boot { @other = 1 }
      server = nil
      on_worker_boot { server = 1 }
    RUBY

    assert_equal({ 3 => "its block uses MAIN, which only Puma's file defines",
                   4 => "its block uses @name, which only Puma's file defines",
                   7 => "its block uses server, which only Puma's file defines" }, left(report).slice(3, 4, 7))
    assert_equal ["worker_boot { @other = 1 }"], code.grep(/boot/)
  end

  def test_a_block_that_works_only_with_puma_stays_behind
    report = carry_over(<<~RUBY)
      before_fork { PumaWorkerKiller.start }
      on_worker_boot { PrometheusExporter::Instrumentation::Puma.start }
      on_booted { puts Puma.stats }
    RUBY

    assert_equal({ 1 => "its block uses PumaWorkerKiller, which works only with Puma; worker_memory_limit replaces " \
                        "workers that are too large",
                   2 => "its block uses PrometheusExporter::Instrumentation::Puma, which works only with Puma",
                   3 => "its block uses Puma, which works only with Puma" }, left(report))
  end

  # Heddle reads PORT and the like after its file.
  def test_a_require_that_sets_variables_is_kept
    File.write("config/dotenv_test.rb", "")
    carry_over("require './config/dotenv_test'\nport 3000\n")

    assert_includes code, "require './config/dotenv_test'"
  end

  def test_the_usual_rackup_file_needs_no_line
    ["rackup DefaultRackup if defined?(DefaultRackup)\n", "rackup 'config.ru'\n"].each do |text|
      assert_match(/rackup .*\n +→ config\.ru is the default/, carry_over(text))
    end
    assert_match(/pass the file/, left(carry_over("rackup 'other.ru'\n"))[1])
  end

  def test_redirected_output_is_reported
    report = carry_over("stdout_redirect 'log/out.log', 'log/errors.log', true\n")

    assert_includes File.read("config/heddle.rb"), %(log_file "log/out.log"\n)
    assert_includes report, "To redirect the application's output and errors"
    assert_includes report, "heddle serve >> log/application.log 2>> log/errors.log"
  end

  # What applications that have been deployed for years say.
  RICH = <<~'RUBY'
    require "etc"

    max_threads = Integer(ENV.fetch("RAILS_MAX_THREADS") { 5 })
    threads Integer(ENV.fetch("RAILS_MIN_THREADS") { max_threads }), max_threads

    app_dir = File.expand_path("..", __dir__)
    directory app_dir
    environment ENV.fetch("RAILS_ENV") { "development" }
    workers Integer(ENV["WEB_CONCURRENCY"] || [Etc.nprocessors / 999, 3].max)
    preload_app!

    bind "unix://#{app_dir}/tmp/sockets/puma.sock?umask=0117"
    bind "tcp://127.0.0.1:#{ENV.fetch("PORT", 3000)}"

    pidfile ENV.fetch("PIDFILE") { "#{app_dir}/tmp/pids/server.pid" }
    state_path "#{app_dir}/tmp/pids/puma.state"
    persistent_timeout 65
    first_data_timeout 15
    force_shutdown_after 25 if ENV["RAILS_ENV"] == "production"
    http_content_length_limit 20_000_000
    quiet
    plugin "yabeda" if Shop.metrics?
    tag "shop"

    on_restart { puts "restarting" }
    lowlevel_error_handler do |error|
      [500, {}, ["oops\n"]]
    end
  RUBY

  def test_a_file_that_has_grown_over_years
    report = carry_over(RICH, status: 1)

    assert_equal ['require "etc"', "workers 3",
                  'bind "unix:tmp/sockets/puma.sock?mode=660"',
                  'bind "127.0.0.1"', "port 3000", 'pidfile "tmp/pids/server.pid"', "idle_timeout 65",
                  "head_timeout 15", 'stop_timeout 25 if ENV["RAILS_ENV"] == "production"', "body_limit 20_000_000",
                  "access_log false", 'on_restart { puts "restarting" }'], code
    assert_equal [7, 16, 22, 23, 26], left(report).keys
    assert_match(%r{incomplete: config/puma\.rb:22: NameError: uninitialized constant Shop$}, report)
    words = Heddle::CLI::InitCommand::PumaSettings::NAMES
    lines = RICH.lines.each_index.select { |index| words.include?(RICH.lines[index][/\A\w+!?/]&.to_sym) }

    assert_equal [1, *lines.map(&:succ)], report.scan(/^ {2,}(\d+)  /).flatten.map(&:to_i).sort
  end
end
