# frozen_string_literal: true

module Heddle
  # Registers autoloads for the files of a folder. As with Zeitwerk, a file's name determines its constant: tcp_bind.rb
  # defines TCPBind.
  #
  # @api private
  module Autoloads
    ACRONYMS = %w[CLI DNS EDNS H1 H2 HTTP JIT TCP TLS TTL UDP URL].to_h { |name| [name.downcase, name] }.freeze
    private_constant :ACRONYMS

    class << self
      # @param namespace [Module]
      # @param folder [String] a folder such as "heddle/server"; each of its files defines one constant of the namespace
      # @param files [Array<String>, nil] names of files without `.rb`; nil: all files of the folder
      # @return [void]
      def add(namespace, folder, files = nil)
        files ||= all(folder)
        files.each { |file| namespace.autoload(constant(file), "#{folder}/#{file}") }
      end

      # Loads all files of a folder at once.
      # @param folder [String]
      # @return [void]
      def load(folder) = all(folder).each { |file| require "#{folder}/#{file}" }

      # Loads the constants that are registered but not loaded yet.
      # @param namespaces [Array<Module>]
      # @param except [Array<Symbol>] constants that are not loaded
      # @return [void]
      def load_constants(*namespaces, except: [])
        namespaces.each do |namespace|
          (namespace.constants - except).each { |name| namespace.const_get(name) if namespace.autoload?(name) }
        end
      end

      private

      def all(folder)
        Dir.glob("*.rb", base: File.expand_path("../#{folder}", __dir__)).map { |file| file.delete_suffix(".rb") }
      end

      def constant(file) = file.split("_").map { |word| ACRONYMS.fetch(word) { word.capitalize } }.join
    end
  end
end
