# frozen_string_literal: true

require "test_helper"
require "support/public_api"
require "open3"
require "tmpdir"
require "uri"
require_relative "../../bin/support/package"

# What a gem of this checkout contains, and what bin/package refuses to build.
class PackageTest < Minitest::Test
  SHIPPED = %w[lib ext exe sig README.md CHANGELOG.md LICENSE].freeze

  def test_gem_contains_neither_documents_nor_examples_nor_tools
    spec = Gem::Specification.load(File.join(ROOT, "heddle.gemspec"))

    assert_empty spec.files.map { |path| path[%r{\A[^/]+}] }.uniq - SHIPPED
    assert_empty spec.files.grep(/\.(so|o)\z/)
    assert_includes spec.post_install_message, "heddle demo"
  end

  def test_site_documents_the_files_that_define_the_api_and_no_others
    files = PublicApi::SIGNATURES.modules.flat_map do |path, entry|
      (mod = PublicApi::RUNTIME.modules[path]) ? files_of(path, mod, entry) : []
    end
    root = File.join(ROOT, "lib/")
    expected = files.compact.select { |file| file.start_with?(root) && file.end_with?(".rb") }
                    .map { |file| file.delete_prefix(root) }.uniq.sort

    assert_equal expected, File.readlines(File.join(ROOT, "docs/site/api_files.txt"), chomp: true)
  end

  def test_ri_documents_the_most_used_public_methods_and_nothing_private
    Dir.mktmpdir do |folder|
      options = ["--ri", "-q", "-o", File.join(folder, "ri"), "lib", "ext"]
      output, status = Open3.capture2e(RbConfig.ruby, "-rrdoc", "-e", "RDoc::RDoc.new.document(ARGV)", "--", *options,
                                       chdir: ROOT)
      assert_predicate status, :success?, output
      methods = Dir.glob("Heddle/**/*-{c,i}.ri", base: File.join(folder, "ri"))

      assert_empty %w[run async map race scope timeout shield].map { |name| "Heddle/#{name}-c.ri" } - methods
      assert_empty methods.reject { |path| public_method?(path) }
      assert_operator installed_files + Dir.glob("**/*.ri", base: folder).size, :<=, 700
    end
  end

  def test_source_gem_has_the_same_bytes_when_it_is_built_twice
    Dir.mktmpdir do |folder|
      assert_output(/\A\h{64}  heddle-.*\.cdx\.json\n\h{64}  heddle-.*\.gem\n\z/) do
        Package.new(folder, rubies: []).run(twice: true)
      end
      assert_equal 2, File.readlines(File.join(folder, "SHA256SUMS")).size
    end
  end

  def test_each_gem_begins_with_the_files_of_the_gemspec
    package = Package.new("", rubies: [])
    package.send(:specification).files += ["lib/heddle/3.3/heddle.so"]

    assert_empty package.send(:specification).files.grep(/\.so\z/)
  end

  def test_mistakes_in_the_command_line_are_one_line_before_anything_is_built
    { %w[--soruce] => %r{\Abin/package: there is no flag --soruce; .*\n\z},
      %w[one two] => %r{\Abin/package: it writes into one folder, but got 2\n\z} }.each do |arguments, message|
      output, errors, status = Open3.capture3(File.join(ROOT, "bin/package"), *arguments)

      assert_equal ["", 2], [output, status.exitstatus]
      assert_match(message, errors)
    end
  end

  def test_library_that_other_machines_lack_is_refused
    error = assert_raises(Package::Error) { check("  NEEDED   libruby-3.4.so.3.4\n  NEEDED   libc.so.6\n", "") }

    assert_match(/needs libruby-3\.4\.so\.3\.4, which not every machine has/, error.message)
  end

  def test_library_that_needs_a_newer_glibc_is_refused
    check("  NEEDED   libc.so.6\n", "GLIBC_2.2.5 malloc\nGLIBC_2.34 dlopen\n")
    error = assert_raises(Package::Error) { check("", "GLIBC_2.38 strtoll\nGLIBC_2.4 x\n") }

    assert_match(/needs glibc 2\.38, at most 2\.34 is allowed/, error.message)
  end

  def test_series_of_ruby_that_is_missing_between_two_others_is_named
    rubies = %w[3.3.8 4.0.5].map { |version| Package::Interpreter.new(version:, path: "ruby", rubygems: nil) }
    error = assert_raises(Package::Error) { Package.new("pkg", rubies:).__send__(:check_gaps) }

    assert_match(/Ruby 3\.4 is missing between those found/, error.message)
  end

  private

  # The source gem's files without C, which is removed once it is compiled, and about ten that RubyGems adds.
  def installed_files
    Gem::Specification.load(File.join(ROOT, "heddle.gemspec")).files.grep_v(%r{\Aext/}).size + 12
  end

  # @param path [String] such as Heddle/Task/ended%3f-i.ri
  def public_method?(path)
    owner, file = File.split(path)
    name, kind = URI.decode_uri_component(file).match(/\A(.*)-([ci])\.ri\z/).captures
    mod = Object.const_get(owner.gsub("/", "::"))
    kind == "i" ? mod.public_method_defined?(name) : mod.respond_to?(name)
  end

  def files_of(path, mod, entry)
    [Object.const_source_location(path), *entry.instance.map { |name| location { mod.public_instance_method(name) } },
     *entry.singleton.map { |name| location { mod.method(name) } }].map { |place| place&.first }
  end

  def location
    yield.source_location
  rescue NameError
    nil
  end

  def check(headers, symbols)
    package = Package.new("pkg", rubies: [])
    package.define_singleton_method(:capture) { |_, option, _| option == "-p" ? headers : symbols }
    package.__send__(:check_library, "heddle.so")
  end
end
