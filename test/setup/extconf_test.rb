# frozen_string_literal: true

# test: long

require "test_helper"
require "fileutils"
require "open3"
require "tmpdir"

# What a person reads when the extension can't be built.
class ExtconfTest < Minitest::Test
  EXTCONF = File.join(ROOT, "ext/heddle/extconf.rb")

  def test_without_a_compiler_one_line_names_what_to_install
    said, status = configure("CC" => "no-such-compiler")

    refute_predicate status, :success?
    assert_equal 1, said.lines.size, said
    assert_match(/\Aheddle: no C compiler \(no-such-compiler is not on PATH\), install one: \S/, said)
  end

  def test_a_broken_compiler_is_reported_as_such
    said, status = configure("CC" => "false")

    refute_predicate status, :success?
    assert_match(/^heddle: false can't build a program/, said)
  end

  def test_an_older_ruby_is_refused
    said, status = configure({}, "-e", 'RUBY_VERSION = "3.2.9"; load ARGV.fetch(0)')

    refute_predicate status, :success?
    assert_equal "heddle: CRuby 3.3 or newer is needed, and this is ruby 3.2.9: install a newer CRuby.\n", said
  end

  def test_windows_is_refused
    said, status = configure({}, "-rrbconfig", "-e",
                             'RbConfig::CONFIG["host_os"] = "mingw32"; load ARGV.fetch(0)')

    refute_predicate status, :success?
    assert_equal 1, said.lines.size, said
    assert_includes said, "Windows is not supported"
  end

  # The one file that differs; the rest of the extension is not built for this.
  def test_without_zlib_nothing_of_it_is_called
    Dir.mktmpdir do |folder|
      said, = Open3.capture2e({ "RUBYOPT" => "-W0", "HEDDLE_ZLIB" => "0" }, RbConfig.ruby, EXTCONF, chdir: folder)
      made, status = Open3.capture2e("make", "http-websocket-permessage_deflate.o", chdir: folder)
      assert_predicate status, :success?, "#{said}\n#{made}"
      symbols, = Open3.capture2("nm", "-u", File.join(folder, "http-websocket-permessage_deflate.o"))

      refute_match(/inflate|deflateInit/, symbols)
      refute_match(/^LIBS = .*-lz\b/, File.read(File.join(folder, "Makefile")))
    end
  end

  # What each of them leads to on Linux is above.
  def test_mac_without_a_compiler_installs_the_gem_which_says_why_it_cannot_serve
    install("CC" => "no-such-compiler") do |said, folder|
      assert_includes said, "heddle: the gem was installed without its C extension"
      assert_match(/its C extension could not be compiled \(no C compiler \(no-such-compiler is not on PATH\)/,
                   serve(folder))
    end
  end

  def test_mac_whose_compiler_fails_installs_the_gem_which_says_why_it_cannot_serve
    with_compiler("echo main.c:1: error: no such thing >&2; exit 1") do |compiler|
      install("CC" => compiler) do |_, folder|
        said = serve(folder)

        assert_match(/could not be compiled \(main\.c:1: error: no such thing\)\. /, said)
        assert_includes said, "run `gem pristine heddle`. Or serve with Puma here"
      end
    end
  end

  def test_mac_whose_compiler_works_installs_the_extension
    with_compiler('while [ $# -gt 0 ]; do [ "$1" = -o ] && : >"$2"; shift; done') do |compiler|
      install("CC" => compiler) do |_, folder|
        assert_equal ["heddle.#{RbConfig::CONFIG["DLEXT"]}"], Dir.children("#{folder}/heddle")
      end
    end
  end

  private

  # Ends well, as RubyGems requires.
  # @yield [said, folder] what was printed, and where the library is
  def install(environment)
    Dir.mktmpdir do |folder|
      mac = ["-rrbconfig", "-e", 'RbConfig::CONFIG["host_os"] = "darwin24"; load($0 = ARGV.fetch(0))', EXTCONF]
      lib = File.join(folder, "lib")
      said = [[RbConfig.ruby, *mac], %w[make clean], %w[make],
              ["make", "install", "sitearchdir=#{lib}", "sitelibdir=#{lib}"]].map do |command|
        output, status = Open3.capture2e({ "RUBYOPT" => "-W0", **environment }, *command, chdir: folder)
        assert_predicate status, :success?, output
        output
      end
      yield said.join, lib
    end
  end

  # mkmf's own programs are compiled, the extension's files only so far as the script says.
  def with_compiler(script)
    Dir.mktmpdir do |folder|
      compiler = File.join(folder, "cc")
      File.write(compiler, "#!/bin/sh\ncase \"$*\" in *conftest*) exec cc \"$@\";; esac\n#{script}\n", perm: 0o755)
      yield compiler
    end
  end

  # The checkout's own build is not seen: it is another variant's.
  def serve(folder)
    copy = File.join(folder, "copy")
    FileUtils.mkdir_p(copy)
    %w[exe lib].each { |name| FileUtils.cp_r(File.join(ROOT, name), copy) }
    FileUtils.rm_rf("#{copy}/lib/heddle/native")
    said, status = Open3.capture2e(RbConfig.ruby, "-I#{folder}", "#{copy}/exe/heddle", "serve")

    assert_equal 1, status.exitstatus
    said
  end

  def configure(environment, *options)
    Dir.mktmpdir do |folder|
      Open3.capture2e({ "RUBYOPT" => "-W0", **environment }, RbConfig.ruby, *options, EXTCONF, chdir: folder)
    end
  end
end
