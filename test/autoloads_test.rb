# frozen_string_literal: true

require "test_helper"
require "heddle/autoloads"
require "open3"

# Constants are loaded from the files of their names.
class AutoloadsTest < Minitest::Test
  ROOT = File.expand_path("..", __dir__)
  # Folders whose files need a gem that is not loaded here.
  OUTSIDE = %w[cli/init databases cable adaptations rails pubsub/backend].freeze

  def test_each_file_of_an_autoloaded_folder_defines_the_constant_of_its_name
    program = <<~RUBY
      require "heddle"
      require "heddle/server"
      require "heddle/net/dns"
      Heddle::Autoloads.singleton_class.prepend(Module.new do
        define_method(:add) { |namespace, folder| super(namespace, folder); ($added ||= []) << [namespace, folder] }
      end)
      %w[protection pubsub server rack cli net/dns live].each { |file| load "heddle/\#{file}.rb" }
      while (namespace, folder = $added.shift)
        next if #{OUTSIDE.inspect}.include?(folder.delete_prefix("heddle/"))
        namespace.constants.each do |name|
          path = namespace.autoload?(name)
          next unless path&.start_with?("\#{folder}/")
          # Each in a process of its own: no order of loading is needed.
          Process.wait(fork do
            namespace.const_get(name)
          rescue NameError => error
            puts error.message
          ensure
            $stdout.flush
            exit!(0)
          end)
        end
      end
    RUBY
    printed, status = Open3.capture2e(RbConfig.ruby, "-W0", "-I#{ROOT}/lib", "-e", program)

    assert_predicate status, :success?, printed
    assert_empty printed
  end

  # Ruby warns of a file that is required while it is being loaded, as its constant's autoload does.
  def test_files_that_documents_require_are_loaded_after_heddle_without_a_warning
    pages = Dir[File.join(ROOT, "{README.md,docs/**/*.md}")]
    files = pages.flat_map { |page| File.read(page).scan(%r{require "(heddle/[\w/]+)"}).flatten }.uniq
    program = <<~RUBY
      require "heddle"
      $VERBOSE = true
      #{files.inspect}.each do |file|
        Process.wait(fork do
          require file
        rescue LoadError, NameError
          nil # needs a gem
        end)
      end
    RUBY
    printed, status = Open3.capture2e(RbConfig.ruby, "-I#{ROOT}/lib", "-e", program)

    assert_includes files, "heddle/http/client"
    assert_predicate status, :success?, printed
    assert_empty printed.lines.grep(%r{warning: .*lib/heddle})
  end
end
