# frozen_string_literal: true

require "fileutils"
require "tmpdir"

# A folder of its own for each test, with the `config.ru` of a small application: `@folder`.
module ApplicationFolder
  def setup
    super
    @folder = File.realpath(Dir.mktmpdir)
    write("config.ru", application)
  end

  def teardown
    FileUtils.remove_entry(@folder)
    super
  end

  def application = "run ->(env) { [200, {}, []] }"

  # @return [String] the path of the file
  def write(name, text)
    path = File.join(@folder, name)
    FileUtils.mkdir_p(File.dirname(path))
    File.write(path, text)
    path
  end
end
