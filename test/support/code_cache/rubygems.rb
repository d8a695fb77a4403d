# frozen_string_literal: true

# Ruby loads RubyGems before a file that RUBYOPT names, and finds it in a folder that RUBYOPT names: this one. So what
# Ruby itself loads at its start is kept, too: a third of that start.
require_relative "../code_cache"
$LOAD_PATH.reject! { |folder| File.identical?(File.join(folder, "rubygems.rb"), __FILE__) }
require "rubygems"

# The server requires Rack by a file's name: RubyGems would read the specifications of all gems until it finds one with
# such a file.
Gem.singleton_class.prepend(Module.new do
  def try_activate(path) = (Gem::Specification.stubs_for("rack").first&.to_spec&.activate if path == "rack") || super
end)
