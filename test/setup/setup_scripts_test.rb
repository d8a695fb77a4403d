# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "open3"
require "tmpdir"

# The shell functions behind bin/setup, on a machine made of temporary folders.
class SetupScriptsTest < Minitest::Test
  def setup
    @folder = Dir.mktmpdir
    @home = File.join(@folder, "home")
    @path = File.join(@folder, "path")
    FileUtils.mkdir_p([@home, @path])
  end

  def teardown
    FileUtils.rm_rf(@folder)
  end

  def test_the_ruby_on_path_comes_before_newer_ones_by_version_and_those_of_version_managers
    fake_ruby(File.join(@path, "ruby"), "3.3.9")
    fake_ruby(File.join(@path, "ruby3.4"), "3.4.2")
    fake_ruby(File.join(@path, "ruby3.5"), "3.5.0")
    fake_ruby(File.join(@path, "ruby4.0"), "4.0.5")
    fake_ruby(File.join(@home, ".rbenv/versions/4.1.0-dev/bin/ruby"), "4.1.0")

    assert_equal %w[3.3.9 4.0.5 3.5.0 3.4.2 4.1.0], found_versions
  end

  def test_one_ruby_for_each_abi
    fake_ruby(File.join(@path, "ruby"), "3.4.1")
    fake_ruby(File.join(@path, "ruby3.4"), "3.4.7")
    fake_ruby(File.join(@home, ".local/share/mise/installs/ruby/3.4.9/bin/ruby"), "3.4.9")

    assert_equal %w[3.4.1], found_versions
  end

  def test_older_rubies_and_other_programs_are_skipped
    fake_ruby(File.join(@path, "ruby"), "3.2.9")
    executable(File.join(@path, "ruby3.4"), "exit 1")
    fake_ruby(File.join(@home, ".asdf/installs/ruby/3.3.1/bin/ruby"), "3.3.1")

    assert_equal %w[3.3.1], found_versions
  end

  def test_a_ruby_with_headers_is_preferred_to_one_without
    fake_ruby(File.join(@path, "ruby"), "3.4.1", headers: false)
    fake_ruby(File.join(@home, ".rbenv/versions/3.4.9/bin/ruby"), "3.4.9")

    assert_equal %w[3.4.9], found_versions
  end

  def test_the_private_build_comes_last_and_counts_only_when_it_is_complete
    fake_ruby(File.join(@path, "ruby3.4"), "3.4.1")
    fake_ruby(File.join(@home, ".cache/heddle/ruby-3.3.8/bin/ruby"), "3.3.8")

    assert_equal %w[3.4.1], found_versions
    FileUtils.touch(File.join(@home, ".cache/heddle/ruby-3.3.8/.complete"))

    assert_equal %w[3.4.1 3.3.8], found_versions
  end

  def test_heddle_ruby_leaves_no_other
    fake_ruby(File.join(@path, "ruby"), "3.4.1")
    fake_ruby(File.join(@folder, "mine"), "3.3.2")

    assert_equal %w[3.3.2], found_versions("HEDDLE_RUBY" => File.join(@folder, "mine"))
  end

  def test_a_mistaken_heddle_ruby_is_named
    fake_ruby(File.join(@path, "ruby3.1"), "3.1.2")
    missing, = shell("find_rubies", "HEDDLE_RUBY" => "/no/such/ruby")
    old, = shell("find_rubies", "HEDDLE_RUBY" => "ruby3.1")

    assert_equal "HEDDLE_RUBY=/no/such/ruby: there is no such command\n", missing
    assert_equal "HEDDLE_RUBY=ruby3.1: this is not CRuby 3.3 or newer\n", old
  end

  def test_the_mirror_is_the_one_that_the_machine_names_for_debian_itself
    executable(File.join(@path, "apt-get"), <<~SH)
      echo 'Packages nodistro https://other.example/node_20.x/'
      echo 'Packages bookworm-security http://mirror.example/debian-security/'
      echo 'Packages bookworm http://mirror.example/debian/'
    SH

    assert_equal ["http://mirror.example/debian\n", true], shell("debian_mirror")
  end

  def test_without_roots_rights_missing_packages_are_named_and_nothing_is_asked
    executable(File.join(@path, "id"), "echo 1000")
    executable(File.join(@path, "sudo"), '[ "$1" = -n ] || echo asked; exit 1')
    executable(File.join(@path, "apt-get"), "echo installed")
    executable(File.join(@path, "dpkg-query"), '[ "$4" = zlib1g-dev ] && printf installed')

    assert_equal ["Building Ruby needs packages that are not installed. As root: apt-get install libssl-dev\n", false],
                 shell('install_packages "Building Ruby" libssl-dev zlib1g-dev')
  end

  def test_the_suites_are_added_low_and_once
    first = suites("bookworm")

    assert_includes first["sources"], "URIs: http://mirror.example/debian\nSuites: trixie experimental\n"
    assert_includes first["pref"], "Pin: release n=trixie\nPin-Priority: 100\n"
    assert_includes first["pref"], "Pin: release a=experimental\nPin-Priority: 1\n"
    assert_equal first, suites("bookworm", "as_root() { echo written again; }")
  end

  def test_on_debian_13_its_own_suite_is_not_lowered
    files = suites("trixie")

    assert_includes files["sources"], "Suites: experimental\n"
    refute_includes files["pref"], "trixie"
  end

  def test_new_checkout_gets_the_gems_that_another_has_installed
    one, other = %w[one other].map { |name| checkout(name) }
    gem = "vendor/bundle/ruby/gem.rb"
    FileUtils.mkdir_p(File.join(one, File.dirname(gem)))
    File.write(File.join(one, gem), "1")
    File.write(File.join(one, "examples/a/Gemfile.lock"), "locked")

    assert_equal ["", true], shell("#{cache_of(one)}; with_gem_cache keep_gems; " \
                                   "#{cache_of(other)}; with_gem_cache restore_gems")
    assert_equal %w[1 locked], [gem, "examples/a/Gemfile.lock"].map { |file| File.read(File.join(other, file)) }
  end

  def test_checkout_with_another_gemfile_gets_no_gems_of_others
    one, other = %w[one other].map { |name| checkout(name) }
    FileUtils.mkdir_p(File.join(one, "vendor/bundle"))
    File.write(File.join(other, "examples/a/Gemfile"), "gem 'b'")

    assert_equal ["", true], shell("#{cache_of(one)}; with_gem_cache keep_gems; " \
                                   "#{cache_of(other)}; with_gem_cache restore_gems")
    refute_path_exists File.join(other, "vendor/bundle")
  end

  # A copy of a link would name the gems of that one checkout, however they change.
  def test_gems_that_a_link_names_are_not_kept_for_other_checkouts
    one, linked, other = %w[one linked other].map { |name| checkout(name) }
    FileUtils.mkdir_p([File.join(one, "vendor/bundle"), File.join(linked, "vendor")])
    File.symlink(File.join(one, "vendor/bundle"), File.join(linked, "vendor/bundle"))

    assert_equal ["", true], shell("#{cache_of(linked)}; with_gem_cache keep_gems; " \
                                   "#{cache_of(other)}; with_gem_cache restore_gems")
    refute File.symlink?(File.join(other, "vendor/bundle"))
  end

  # Their versions were resolved for those, and may not run here.
  def test_checkout_for_other_rubies_gets_no_gems_of_others
    one, other = %w[one other].map { |name| checkout(name) }
    FileUtils.mkdir_p(File.join(one, "vendor/bundle"))

    assert_equal ["", true], shell("#{cache_of(one)}; with_gem_cache keep_gems; " \
                                   "#{cache_of(other, rubies: %w[3.4.1 4.0.5])}; with_gem_cache restore_gems")
    refute_path_exists File.join(other, "vendor/bundle")
  end

  def test_gems_installed_in_one_checkout_are_not_taken_for_installed_in_a_copy_that_shares_its_files
    one, copy = %w[one copy].map { |name| checkout(name) }
    stamp = "vendor/bundle/.installed-3.4.1-Gemfile"
    FileUtils.mkdir_p([one, copy].map { |root| File.join(root, "vendor/bundle") })
    File.write(File.join(one, stamp), "former state")
    File.link(File.join(one, stamp), File.join(copy, stamp))

    assert_equal ["", true], shell("root=#{one} runtime=no heddle_log=#{@folder} PATH=#{ENV.fetch("PATH")}
                                    . #{ROOT}/bin/support/prepare.sh
                                    with_progress() { :; }; install_gems ruby 3.4.1 #{one}/Gemfile")
    refute_equal "former state", File.read(File.join(one, stamp))
    assert_equal "former state", File.read(File.join(copy, stamp))
  end

  # In a copy that could not be set up: a tool that tries says so, or fails.
  def test_every_tool_shows_its_help_without_a_set_up
    FileUtils.cp_r(File.join(ROOT, "bin"), @folder)
    tools = Dir.children(File.join(@folder, "bin")).select { |name| tool?(name) } - ["setup"]
    executable(File.join(@folder, "bin/setup"), "echo sets up; exit 1")
    FileUtils.mkdir_p(File.join(@folder, "benchmark"))

    help = tools.to_h do |name|
      [name, Open3.capture2e({ "HEDDLE_RUBY" => RbConfig.ruby }, File.join(@folder, "bin", name), "--help")]
    end
    help.each do |name, (text, status)|
      assert_predicate status, :success?, "bin/#{name} --help: #{text}"
      assert_match(%r{\A(?:Usage: |Prints ).*bin/#{name}}m, text)
      refute_includes text, "sets up"
    end
    assert_operator help.size, :>=, 10
  end

  # One with options, and one that begins with a comment.
  def test_benchmarks_show_their_help_without_a_set_up
    %w[bin benchmark].each { |name| FileUtils.cp_r(File.join(ROOT, name), @folder) }
    executable(File.join(@folder, "bin/setup"), "echo sets up; exit 1")
    %w[http alarms].each do |name|
      text, status = Open3.capture2e({ "HEDDLE_RUBY" => RbConfig.ruby }, File.join(@folder, "bin/bench"),
                                     name, "--help")

      assert_predicate status, :success?, "#{name}: #{text}"
      assert_match(/Usage: |^[^#]{40}/, text, name)
      refute_includes text, "sets up"
    end
  end

  def test_a_step_that_fails_shows_the_end_of_its_log_and_its_exit_code
    log = File.join(@folder, "log")
    said, good = shell("with_progress 'a step' #{log} '' 0 sh -c 'echo the reason; exit 3'")

    refute good
    assert_equal "the reason\na step: failed (exit code 3); the whole log is #{log}\n", said
  end

  def test_gems_are_compiled_without_optimization_in_ci_only
    ruby = File.join(@folder, "ruby")
    File.write(ruby, "#!/bin/sh\necho \"$MAKEFLAGS\"", perm: 0o755)
    support = File.join(@folder, "a folder")
    FileUtils.cp_r(File.join(ROOT, "bin/support"), support)
    install = "runtime=no frozen=no; . $support/prepare.sh; support='#{support}'; groups_without() { :; }; " \
              "bundle_with #{ruby} Gemfile show"

    assert_equal ["\n", true], shell(install, { "CI" => nil, "MAKEFLAGS" => nil })
    makefile = File.join(@folder, "Makefile")
    File.write(makefile, "CC = gcc\nall:\n\t@$(CC) 1\n\t@$(CXX) 2\n")
    %w[gcc g++].each { |name| executable(File.join(@path, name), "echo #{name} \"$@\"") }
    flags, = shell(install, { "CI" => "true", "MAKEFLAGS" => nil })
    environment = { "MAKEFLAGS" => flags.chomp, "PATH" => "#{@path}:#{ENV.fetch("PATH")}" }

    assert_equal "gcc 1 -O0 -g0\ng++ 2 -O0 -g0\n",
                 Open3.capture2(environment, "make", "-s", "-f", makefile).first
  end

  def test_gems_that_ci_compiled_are_marked_and_nothing_is_measured_with_them
    root = checkout("gems")
    %w[bin benchmark].each { |name| FileUtils.cp_r(File.join(ROOT, name), root) }
    File.write(File.join(root, "bin/support/packages.sh"), "install_packages() { :; }\n")
    executable(File.join(root, "bin/setup"), "printf '1\\t\\t\\t\\t./ruby\\n' >\"$5\"")
    executable(File.join(root, "ruby"), "echo measured")
    install = "root=#{root} runtime=no; . $support/prepare.sh; with_progress() { :; }; install_gems ruby 3.4.1"
    measured = lambda do |ci|
      Open3.capture2e({ "CI" => ci }, File.join(root, "bin/bench"), "alarms", chdir: root).first
    end

    assert_equal ["", true], shell(install, { "CI" => nil, "PATH" => ENV.fetch("PATH") })
    assert_includes measured.call(nil), "measured\n"
    FileUtils.rm_rf(File.join(root, "vendor"))

    assert_equal ["", true], shell(install, { "CI" => "true", "PATH" => ENV.fetch("PATH") })
    assert_includes measured.call("true"), "measured\n"
    assert_equal "bin/bench: CI has compiled gems of this checkout without optimization; remove vendor/bundle, and " \
                 "call bin/bench again\n", measured.call(nil).lines.last
  end

  def test_gems_of_examples_are_installed_for_the_chosen_ruby_only
    named = ["Gemfile", "test/rails/bundles/b/Gemfile", "examples/a/Gemfile", "test/switch/c/Gemfile"]

    assert_equal named, gemfiles("3.3.8", nil)
    assert_equal named, gemfiles("3.4.1", "3.4")
    assert_equal named.first(2), gemfiles("3.3.8", "3.4")
  end

  private

  # @return [Array<String>] the Gemfiles whose gems are installed for this version
  def gemfiles(version, examples_on)
    said, good = shell("root=#{checkout("gems")} runtime=no; . $support/prepare.sh; " \
                       "has_stamp() { printf '%s\\n' \"$2\"; }; install_gems ruby #{version}",
                       { "HEDDLE_TEST_EXAMPLES_ON" => examples_on })

    raise said unless good

    said.lines(chomp: true).map { |line| line.delete_prefix("#{@folder}/gems/") }
  end

  def tool?(name) = File.join(@folder, "bin", name).then { |path| File.file?(path) && File.executable?(path) }

  # A checkout as far as its gems depend on it.
  def checkout(name)
    File.join(@folder, name).tap do |root|
      %w[Gemfile Gemfile.lock heddle.gemspec lib/heddle/version.rb examples/a/Gemfile
         test/rails/bundles/b/Gemfile test/switch/c/Gemfile test/switch/c/Gemfile.lock].each do |file|
        FileUtils.mkdir_p(File.dirname(File.join(root, file)))
        File.write(File.join(root, file), file)
      end
    end
  end

  def cache_of(root, rubies: ["3.4.1"])
    lines = rubies.map { |version| "0\t003\t#{version}" }.join("\n")
    "PATH=#{ENV.fetch("PATH")} root=#{root} heddle_cache=#{@folder}/cache rubies='#{lines}'; " \
      ". #{ROOT}/bin/support/gem_cache.sh"
  end

  # @return [Array(String, Boolean)] what was said on both outputs, and whether the command succeeded
  def shell(command, environment = {})
    script = "root=#{ROOT} heddle_log=#{@folder}\n" \
             "for part in say rubies packages system; do . #{ROOT}/bin/support/$part.sh; done\n#{command}"
    environment = { "PATH" => "#{@path}:#{tools}", "HOME" => @home, "HEDDLE_RUBY" => nil, "XDG_CACHE_HOME" => nil,
                    "XDG_DATA_HOME" => nil, "RBENV_ROOT" => nil, "MISE_DATA_DIR" => nil, "ASDF_DATA_DIR" => nil,
                    "support" => "#{ROOT}/bin/support", **environment }
    output, status = Open3.capture2e(environment, "bash", "-c", script)
    [output, status.success?]
  end

  # The system's programs, without its Rubies.
  def tools
    folder = File.join(@folder, "tools")
    return folder if File.directory?(folder)

    FileUtils.mkdir_p(folder)
    %w[awk bash cat cksum cut env grep head id mkdir sed sh sleep sort tail tee tr].each do |name|
      program = %w[/usr/bin /bin].map { |bin| File.join(bin, name) }.find { |path| File.executable?(path) }
      FileUtils.ln_s(program, File.join(folder, name))
    end
    folder
  end

  def found_versions(environment = {})
    said, good = shell("find_rubies", environment)

    assert good, "find_rubies said #{said}"
    said.lines.map { |line| line.split("\t")[2] }
  end

  def suites(base, before = "")
    said, good = shell("apt_etc=#{@folder}/apt; mkdir -p $apt_etc/sources.list.d $apt_etc/preferences.d\n" \
                       "as_root() { \"$@\"; }\n#{before}\nadd_suites #{base} http://mirror.example/debian")

    assert_equal ["", true], [said, good]
    { "sources" => File.read("#{@folder}/apt/sources.list.d/heddle.sources"),
      "pref" => File.read("#{@folder}/apt/preferences.d/heddle.pref") }
  end

  def executable(path, content)
    FileUtils.mkdir_p(File.dirname(path))
    File.write(path, "#!/bin/sh\n#{content}\n")
    File.chmod(0o755, path)
  end

  # This Ruby, under another name and version.
  def fake_ruby(path, version, headers: true)
    disguise = "#{path}.rb"
    executable(path, "exec #{RbConfig.ruby} -W0 -r#{disguise} \"$@\"")
    File.write(disguise, <<~RUBY)
      require "rbconfig"
      RUBY_VERSION = #{version.inspect}
      RbConfig::CONFIG["ruby_version"] = #{version.sub(/\d+\z/, "0").inspect}
      RbConfig::CONFIG["rubyhdrdir"] = "/nowhere" unless #{headers}
      def RbConfig.ruby = #{path.inspect}
    RUBY
  end
end
