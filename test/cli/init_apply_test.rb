# frozen_string_literal: true

require "test_helper"
require "heddle/cli"
require "heddle/server"
require "fileutils"
require "minitest/mock"
require "stringio"
require "tmpdir"

# `heddle init --apply`, and `heddle init --undo`.
class InitApplyTest < Minitest::Test
  PUMA = "threads 3\nport ENV.fetch(\"PORT\", 3000)\nworkers 2 if Rails.env.production?\n"

  def setup
    @folder = File.realpath(Dir.mktmpdir)
    @before = Dir.pwd
    Dir.chdir(@folder)
  end

  def teardown
    Dir.chdir(@before)
    FileUtils.remove_entry(@folder)
  end

  def init(*arguments)
    output = StringIO.new
    errors = StringIO.new
    [Heddle::CLI.run(["init", *arguments], output:, errors:), output.string, errors.string]
  end

  def apply(files, *flags)
    files.each do |path, text|
      FileUtils.mkdir_p(File.dirname(path))
      File.binwrite(path, text)
    end
    status, output, errors = init("--apply", *flags)

    assert_equal [0, ""], [status, errors], output
    output
  end

  # What is there after it has been applied, without marks.
  def read(path) = File.binread(path).lines(chomp: true).grep_v(/# heddle:install/).join("\n")

  def content = Dir["**/*"].select { |path| File.file?(path) }.to_h { |path| [path, File.binread(path)] }

  def assert_undone(files)
    assert_equal 0, init("--undo").first
    assert_equal(files.transform_values(&:b), content)
  end

  def test_folders_with_names_of_start_files_are_left_out
    FileUtils.mkdir_p(%w[Dockerfile.d test/models.rb])
    files = { "Gemfile" => "gem \"puma\"\n" }
    apply(files)

    assert_undone files
  end

  def test_a_file_that_cannot_be_written_is_named
    File.write("Gemfile", "gem \"puma\"\n")
    status, _, errors = File.stub(:binwrite, ->(*) { raise Errno::EROFS, "@ rb_sysopen - Gemfile" }) { init("--apply") }

    assert_equal 2, status
    assert_match(/\Aheddle: can't write Gemfile: Read-only file system\. `heddle init --undo` restores/, errors)
  end

  # @return [String, nil] what becomes of one line
  def changed(path, line, *flags)
    apply({ path => "#{line}\n" }, *flags)
    text = read(path)
    init("--undo")

    assert_equal "#{line}\n", File.read(path)
    text unless text == line
  end

  RAILS = {
    "Gemfile" => "source \"x\"\n# Use the Puma web server [https://github.com/puma/puma]\ngem \"puma\", \">= 5.0\"\n" \
                 "gem \"jbuilder\"\n",
    "config/puma.rb" => PUMA,
    "Dockerfile" => "FROM ruby\nRUN gem install puma\nCMD [\"./bin/thrust\", \"./bin/rails\", \"server\"]\n",
    "bin/docker-entrypoint" => <<~SH,
      #!/bin/bash -e
      if [ "${@: -2:1}" == "./bin/rails" ] && [ "${@: -1:1}" == "server" ]; then
        ./bin/rails db:prepare
      fi

      exec "${@}"
    SH
    "Procfile" => "web: bundle exec puma -C config/puma.rb -p $PORT\nworker: bin/jobs\n",
    "Procfile.dev" => "web: bin/rails server -p 3000\ncss: bin/rails tailwindcss:watch\n",
    "config/deploy.yml" => "servers:\n  web:\n    cmd: bin/rails server\nenv:\n  SOLID_QUEUE_IN_PUMA: true\n",
    "test/application_system_test_case.rb" => "  Capybara.server = :puma, { Silent: true }\n"
  }.freeze

  def test_files_of_a_rails_application_start_heddle_and_are_restored_byte_by_byte
    output = apply(RAILS, "--no-keep-puma")

    assert_equal "source \"x\"\ngem \"heddle\"\ngem \"jbuilder\"", read("Gemfile")
    assert_equal "FROM ruby\nRUN gem install puma\nCMD [\"./bin/thrust\", \"bundle\", \"exec\", \"heddle\", \"serve\"]",
                 read("Dockerfile")
    assert_equal "web: bundle exec heddle serve --port $PORT\nworker: bin/jobs", read("Procfile")
    assert_equal RAILS["Procfile.dev"], File.read("Procfile.dev")
    assert_includes read("config/deploy.yml"), "    cmd: bundle exec heddle serve\nenv:"
    assert_equal "  Capybara.server = :heddle", read("test/application_system_test_case.rb")
    assert_match(/^Gemfile:2\n  - # Use the Puma.*\n  - gem "puma", ">= 5.0"\n  \+ gem "heddle"\n  `rails/, output)
    assert_undone(RAILS)
  end

  # It has no configuration that says where to listen.
  def test_files_of_a_sinatra_application_start_heddle_on_every_address_and_are_restored
    files = { "Gemfile" => "source \"x\"\n\ngem \"sinatra\"\ngem \"rackup\"\ngem \"puma\"\n",
              "config.ru" => "require \"./app\"\nrun Sinatra::Application\n",
              "Dockerfile" => 'CMD ["bundle", "exec", "rackup", "-p", "4567", "-o", "0.0.0.0"]',
              "Procfile" => "web: bundle exec puma -p $PORT\n", "Procfile.dev" => "web: bundle exec rackup -p 4567\n" }
    apply(files, "--no-keep-puma")

    refute_path_exists "config/heddle.rb"
    assert_includes read("Gemfile"), "gem \"rackup\"\ngem \"heddle\""
    assert_equal 'CMD ["bundle", "exec", "heddle", "serve", "--port", "4567", "--bind", "0.0.0.0"]', read("Dockerfile")
    assert_equal "web: bundle exec heddle serve --port $PORT --bind 0.0.0.0", read("Procfile")
    assert_equal "web: bundle exec heddle serve --port 4567", read("Procfile.dev")
    assert_undone(files)
  end

  def test_commands_name_every_address_unless_the_existing_configuration_sets_one
    files = { "Gemfile" => "gem \"puma\"\n", "Procfile" => "web: bin/rails server\n" }
    init
    apply(files) # the file of `heddle init` sets no option

    assert_equal "web: bundle exec heddle serve --bind 0.0.0.0", read("Procfile")
    init("--undo")
    apply(files.merge("config/heddle.rb" => "bind \"0.0.0.0\" if environment == \"production\"\n"))

    assert_equal "web: bundle exec heddle serve", read("Procfile")
  end

  def test_existing_configuration_stays_and_the_output_names_the_way_to_replace_it
    output = apply({ "config/puma.rb" => PUMA, "config/heddle.rb" => "port 1\n" })

    assert_includes output, "config/heddle.rb was not changed; --force replaces it by a translation of config/puma.rb."
  end

  def test_configuration_passes_heddle_check_in_every_environment
    apply(RAILS)
    found = %w[development test production staging].to_h do |environment|
      configuration = Heddle::Server::Configuration.load(environment: { "RAILS_ENV" => environment }, folder: @folder)
      [environment, configuration.source(:workers).to_s]
    end

    assert_equal %w[default default default], found.except("production").values
    refute_equal "default", found["production"]
  end

  # The entrypoint of an image runs before each command.
  def test_entrypoint_prepares_the_database_for_both_servers_and_for_nothing_else
    apply("bin/docker-entrypoint" => RAILS["bin/docker-entrypoint"].sub("exec \"${@}\"", ""))
    FileUtils.mkdir_p("bin")
    File.write("bin/rails", "#!/bin/sh\necho prepared\n", perm: 0o755)
    run = ->(*command) { IO.popen(["bash", "bin/docker-entrypoint", *command], &:read) }

    assert_equal "prepared\n", run.call("./bin/thrust", "bundle", "exec", "heddle", "serve", "--port", "3000")
    assert_equal "prepared\n", run.call("./bin/rails", "server")
    assert_equal "", run.call("./bin/rails", "console")
  end

  # Those of Rails 7.1 and 7.2, and of generators of images.
  def test_each_generation_of_the_entrypoint_prepares_the_database
    ['if [ "${*}" == "./bin/rails server" ]; then', 'if [ "${1}" == "./bin/rails" ] && [ "${2}" == "server" ]; then',
     'if [ "${@: -2:1}" == "./bin/rails" ] && [ "${@: -1:1}" == "server" ]; then',
     'if [[ "$*" == *"rails server"* ]]; then'].each do |condition|
      text = "#!/bin/bash -e\n#{condition}\n  ./bin/rails db:prepare\nfi\n"
      apply("bin/docker-entrypoint" => text)

      assert_includes read("bin/docker-entrypoint"), %(if [[ " $* " == *" heddle serve "*), condition
      init("--undo")

      assert_equal text, File.read("bin/docker-entrypoint")
    end
  end

  def test_files_that_puma_reads_for_one_environment_are_named
    output = apply("config/puma/production.rb" => "workers 3\n")

    assert_includes output, "config/puma/production.rb was not translated"
    assert_includes output, "heddle init config/heddle/production.rb --from config/puma/production.rb"
  end

  def test_puma_stays_for_development_and_tests_where_heddle_was_never_run
    path = "Gemfile"
    File.write(path, RAILS[path])
    installation = Heddle::CLI::InitCommand::Installation.new(platform: "darwin24")
    report = installation.prepare(bound: true).apply.join("\n")

    assert_equal "source \"x\"\n# Use the Puma web server [https://github.com/puma/puma]\n" \
                 "gem \"puma\", \">= 5.0\", group: %i[development test]\ngem \"jbuilder\"\n" \
                 "gem \"heddle\", group: :production", read(path)
    assert_includes report, "because Heddle was never tested on darwin24"
    assert_undone(RAILS.slice(path))
    apply(RAILS, "--keep-puma")

    assert_equal RAILS["test/application_system_test_case.rb"], File.read("test/application_system_test_case.rb")
    assert_undone(RAILS)
  end

  { "in a group" => ["group :production do\n  gem 'puma'\nend\n", "group :production do\n  gem \"heddle\"\nend"],
    "with a group" => ["gem(\"puma\", \"~> 6\", group: :web, require: false)\n", "gem(\"heddle\", group: :web)"],
    "in several lines" => ["gem \"puma\",\n    \"~> 6\" # web\ngem \"rack\"\n", "gem \"heddle\" # web\ngem \"rack\""],
    "under a condition" => ["gem \"puma\" unless ENV[\"CI\"]\n", "gem \"heddle\" unless ENV[\"CI\"]"],
    "without a newline at the end" => ["gem \"rack\"\ngem \"puma\"", "gem \"rack\"\ngem \"heddle\""],
    "with lines of Windows" => ["# Größe\r\ngem \"puma\"\r\n", "# Größe\ngem \"heddle\"".b],
    "beside heddle" => ["gem \"puma\"\ngem \"heddle\", \"~> 0.1\"\n",
                        "# The gem \"heddle\" replaces puma.\ngem \"heddle\", \"~> 0.1\""],
    "as a comment" => ["# gem \"puma\"\n", "# gem \"puma\"\ngem \"heddle\""],
    "nowhere and no newline" => ["gem \"sinatra\"", "gem \"sinatra\"\ngem \"heddle\""] }
    .each do |place, (before, after)|
    define_method("test_gemfile_with_puma_#{place.tr(" ", "_")}_is_changed_and_restored") do
      apply({ "Gemfile" => before }, "--no-keep-puma")

      assert_equal after, read("Gemfile")
      assert_empty File.binread("Gemfile").scan(/[^\r]\n/) if before.include?("\r\n")
      assert_undone("Gemfile" => before)
    end
  end

  def test_gemfile_with_parentheses_keeps_puma_in_groups
    files = { "Gemfile" => "gem('puma', '~> 7')\ngem('heddle')\n" }
    apply(files, "--keep-puma")

    assert_equal "gem('puma', '~> 7', group: %i[development test])\ngem('heddle', group: :production)", read("Gemfile")
    assert_undone(files)
  end

  def test_gemfile_of_a_group_keeps_puma_and_gets_heddle_for_production
    files = { "Gemfile" => "group :development do\n  gem \"puma\"\nend\ngem \"heddle\"\n" }
    apply(files, "--keep-puma")

    assert_equal "group :development do\n  gem \"puma\"\nend\ngem \"heddle\", group: :production", read("Gemfile")
    assert_undone(files)
  end

  def test_start_commands_are_translated
    { "web: bundle exec puma -t 5:5 -p ${PORT:-3000} -e production" =>
        "web: bundle exec heddle serve --port ${PORT:-3000} --environment production --bind 0.0.0.0",
      "web: bin/puma -t 1:1 -b tcp://[::]:9292" =>
        "web: bundle exec heddle serve --max-requests 1 --bind tcp://[::]:9292",
      "web: bundle exec puma -b 'unix:///app/puma.sock?umask=0111' -b unix:///app/tmp/a.sock" =>
        "web: bundle exec heddle serve --bind 'unix:/app/puma.sock?mode=666' --bind unix:/app/tmp/a.sock?mode=777",
      "web: rackup -s puma -o 0.0.0.0 -p 80 app.ru" => "web: bundle exec heddle serve --bind 0.0.0.0 --port 80 app.ru",
      "web: bin/rails db:migrate && bin/rails s -b 0.0.0.0" =>
        "web: bin/rails db:migrate && bundle exec heddle serve --bind 0.0.0.0",
      "jobs: bin/rails solid_queue:start" => nil, "web: rails server_stub" => nil, "# web: puma" => nil }
      .each do |line, expected|
        next assert_nil(changed("Procfile", line)) unless expected

        assert_equal expected, changed("Procfile", line)
      end
    assert_equal "ENTRYPOINT [\"bundle\", \"exec\", \"heddle\", \"serve\", \"--bind\", \"0.0.0.0\"]",
                 changed("Dockerfile", 'ENTRYPOINT ["bundle", "exec", "puma"]')
    assert_equal "    command: bash -c \"rm -f x && bundle exec heddle serve --bind 0.0.0.0\"",
                 changed("compose.yaml", '    command: bash -c "rm -f x && bundle exec rails s -b 0.0.0.0"')
  end

  def test_start_commands_of_hosting_services_are_translated
    { "fly.toml" => '  app = "bundle exec puma -C config/puma.rb"', "fly.staging.toml" => "  web = 'bin/rails server'",
      "render.yaml" => "    startCommand: bundle exec puma -C config/puma.rb",
      "heroku.yml" => "  web: bundle exec puma" }.each do |path, line|
      assert_equal line.sub(/bundle exec puma(?: -C config.puma.rb)?|bin.rails server/,
                            "bundle exec heddle serve --bind 0.0.0.0"), changed(path, line)
    end
    assert_nil changed("fly.toml", 'app = "puma-shop"')
  end

  def test_values_of_flags_keep_their_quotes
    { %q(    command: bash -c "rm -f x && bundle exec rails s -p 3000 -b '0.0.0.0'") =>
        %q(    command: bash -c "rm -f x && bundle exec heddle serve --port 3000 --bind '0.0.0.0'"),
      %q(    command: sh -c 'bin/rails s --binding="0.0.0.0" && echo "ended"') =>
        %q(    command: sh -c 'bundle exec heddle serve --bind "0.0.0.0" && echo "ended"') }
      .each { |line, expected| assert_equal expected, changed("compose.yaml", line) }
    assert_equal 'web: bundle exec heddle serve --max-requests 1 --port "$PORT" --bind 0.0.0.0',
                 changed("Procfile", 'web: bundle exec puma -C "config/puma.rb" -t "1:1" -p "$PORT"')
  end

  def test_start_commands_with_an_address_that_heddle_does_not_have_stay
    output = apply("Procfile" => "web: puma -b unix://@abstract\n")

    assert_match(/^Procfile:1 was not changed: Heddle does not listen on sockets without a file\.\n  web: puma/, output)
    assert_equal "web: puma -b unix://@abstract\n", File.read("Procfile")
  end

  def test_start_commands_with_an_unknown_flag_stay_and_are_named
    output = apply("Procfile" => "web: puma --control-url auto\nother: puma -C config/other.rb\n")

    assert_match(/^Procfile:1 was not changed: Heddle has no equivalent of --control-url\.\n  web: puma --control-/,
                 output)
    assert_match(%r{^Procfile:2 was not changed: translate the file first: heddle init --from config/other\.rb}, output)
    assert_equal "web: puma --control-url auto\nother: puma -C config/other.rb\n", File.read("Procfile")
  end

  def test_start_command_with_a_flag_without_its_value_stays
    output = apply("Procfile" => "web: puma -p\n")

    assert_match(/^Procfile:1 was not changed: -p has no value\.$/, output)
    assert_equal "web: puma -p\n", File.read("Procfile")
  end

  def test_translated_commands_are_flags_that_heddle_has
    flags = Heddle::CLI::InitCommand::StartCommand::FLAGS.values.compact

    assert_empty(flags.reject { |flag| Heddle::CLI::Flags.known?(flag) })
  end

  def test_second_time_changes_nothing
    apply(RAILS)
    before = content

    assert_match(/^No file needed a change\.\n\z/, apply({}), "nor is there anything to undo")
    assert_equal before, content
    assert_undone(RAILS)
  end

  def test_undo_keeps_what_was_changed_since
    apply(RAILS, "--no-keep-puma")
    File.write("Gemfile", "#{File.read("Gemfile")}gem \"mine\"\n")
    File.write("config/heddle.rb", "#{File.read("config/heddle.rb")}port 1\n")
    File.write("Procfile", File.read("Procfile").sub(/^web: bundle.*/, "web: unicorn"))
    output = init("--undo")[1]

    assert_equal "#{RAILS["Gemfile"]}gem \"mine\"\n", File.read("Gemfile")
    assert_match(/port 1\n\z/, File.read("config/heddle.rb"))
    assert_includes output, "config/heddle.rb was kept, because it has changes since"
    assert_equal "web: bundle exec puma -C config/puma.rb -p $PORT\nweb: unicorn\nworker: bin/jobs\n",
                 File.read("Procfile")
  end

  def test_undo_keeps_lines_that_only_mention_the_servers
    text = "source \"https://example.org\"\ngem \"puma\"\ngem \"puma_worker_killer\"\n"
    apply("Gemfile" => text)
    File.write("Gemfile", File.read("Gemfile").sub(/^gem "heddle"\n/, ""))

    assert_undone("Gemfile" => text)
  end

  def test_call_of_several_lines_is_restored
    files = { "Gemfile" => "gem \"puma\",\n    \">= 5\",\n    require: false\ngem(\n  \"pg\"\n)\n",
              "Procfile" => "web: bundle exec puma\n" }
    %w[--keep-puma --no-keep-puma].each do |flag|
      apply(files, flag)
      assert_undone(files)
      parenthesized = { "Gemfile" => "gem(\n  \"puma\",\n  require: false\n)\n" }
      FileUtils.rm("Procfile")
      apply(parenthesized, flag)
      assert_undone(parenthesized)
    end
  end

  def test_nothing_is_changed_when_a_file_cannot_be_read_as_ruby
    { "Gemfile" => "gem (\n", "config/puma.rb" => "bind [}\n" }.each do |path, text|
      RAILS.merge(path => text).each do |name, content|
        FileUtils.mkdir_p(File.dirname(name))
        File.binwrite(name, content)
      end
      before = content
      status, _, errors = init("--apply")

      assert_equal 2, status
      assert_match(/\Aheddle: #{path}:\d: syntax error/, errors)
      assert_equal before, content
    end
  end

  # Bytes of any kind: they are in a comment meanwhile.
  { "of Windows without a newline at its end" => "# Gr\u00f6\u00dfe\r\nport 1\r\nworkers 2", "that is empty" => "",
    "that is no text" => "port 1 # \xFF \#{x} \"\\n\n" }.each do |kind, former|
    define_method("test_configuration_#{kind.tr(" ", "_")}_is_replaced_by_force_and_restored") do
      files = { "Gemfile" => "gem \"puma\"\n", "config/puma.rb" => PUMA, "config/heddle.rb" => former }
      output = apply(files, "--force")

      assert_includes output, "config/heddle.rb written."
      assert_includes File.read("config/heddle.rb"), "workers 2 if"
      assert_equal 0, init("--apply", "--force").first
      assert_equal(2, Heddle::Server::Configuration.load(environment: { "RAILS_ENV" => "production" }).workers)
      assert_undone(files)
    end
  end

  def test_configuration_that_was_changed_after_it_was_replaced_stays_and_its_comment_has_the_former_bytes
    files = { "config/puma.rb" => PUMA, "config/heddle.rb" => "port 1\n" }
    apply(files, "--force")
    File.write("config/heddle.rb", "#{File.read("config/heddle.rb")}port 2\n")

    assert_includes init("--undo")[1], "config/heddle.rb was kept, because it has changes since"
    assert_includes File.read("config/heddle.rb"), '# heddle:install replaced: "port 1\n"'
  end

  def test_configuration_of_somebody_else_stays_with_and_without_force
    files = { "Gemfile" => "gem \"puma\"\n", "config/heddle.rb" => "port 1\n" }
    [[], ["--force"]].each do |flags|
      assert_includes apply(files, *flags), "config/heddle.rb was not changed."
      assert_undone(files)
    end
  end

  def test_modes_of_files_stay
    apply(RAILS)
    File.chmod(0o755, "bin/docker-entrypoint")
    init("--undo")
    init("--apply")

    assert_equal 0o755, File.stat("bin/docker-entrypoint").mode & 0o777
  end
end
