"""The tables of roles of each language, one line for a role and contexts of the syntax tree.

`parsing.RoleTable` explains the lines.
"""

from __future__ import annotations

_PYTHON = """
function: function_definition lambda
block: list_comprehension set_comprehension dictionary_comprehension generator_expression
class: class_definition
outside: default_parameter.value typed_default_parameter.value typed_default_parameter.type
outside: typed_parameter.type function_definition.return_type class_definition.superclasses
outside: for_in_clause.right
outer: function_definition.name class_definition.name
def: parameters lambda_parameters default_parameter.name typed_default_parameter.name for_in_clause.left
up: typed_parameter list_splat_pattern dictionary_splat_pattern pattern_list tuple_pattern list_pattern
up: as_pattern_target dotted_name
var: assignment.left for_statement.left named_expression.name as_pattern.alias as_pattern.+ case_pattern
var: keyword_pattern.+ splat_pattern
import: import_statement.name import_from_statement.name aliased_import.alias
key: aliased_import.name import_from_statement.module_name dotted_name.+ keyword_pattern relative_import
keyword: keyword_argument.name
access: attribute.attribute
global: global_statement
nonlocal: nonlocal_statement
use: class_pattern typed_parameter.type
"""
_JAVASCRIPT = """
function: function_declaration function_expression arrow_function method_definition generator_function
function: generator_function_declaration class_static_block
block: statement_block for_statement for_in_statement catch_clause switch_body
class: class_declaration class object
outside: for_in_statement.right class_declaration.decorator
outer: function_declaration.name generator_function_declaration.name class_declaration.name
def: function_expression.name class.name formal_parameters arrow_function.parameter catch_clause.parameter
def: for_in_statement.left?kind lexical_declaration
var: variable_declaration
up: variable_declarator.name array_pattern object_pattern rest_pattern assignment_pattern.left
up: object_assignment_pattern.left pair_pattern.value
use: assignment_pattern.right object_assignment_pattern.right
set: assignment_expression.left
member: method_definition.name field_definition.property
access: member_expression.property
import: import_clause import_specifier.name?!alias import_specifier.alias namespace_import
key: import_specifier.name export_specifier.alias pair.key pair_pattern.key jsx_attribute
label: labeled_statement.label
goto: break_statement.label continue_statement.label
"""
_TYPESCRIPT = f"""{_JAVASCRIPT}
function: function_type construct_signature call_signature method_signature abstract_method_signature
function: function_signature constructor_type type_alias_declaration
class: interface_declaration abstract_class_declaration object_type
enum: enum_declaration
outer: interface_declaration.name type_alias_declaration.name enum_declaration.name function_signature.name
outer: abstract_class_declaration.name internal_module.name module.name
def: required_parameter.pattern optional_parameter.pattern index_signature.name mapped_type_clause.name
tparam: type_parameter.name
member: property_signature.name method_signature.name abstract_method_signature.name
member: public_field_definition.name enum_assignment.name enum_body.name
access: nested_type_identifier.name nested_identifier.property
"""
_GO = """
function: function_declaration method_declaration func_literal function_type method_elem
block: block if_statement for_statement expression_switch_statement type_switch_statement expression_case
block: type_case default_case communication_case
class: type_spec
receiver: method_declaration
outside: range_clause.right
outer: function_declaration.name type_spec.name
def: parameter_declaration.name variadic_parameter_declaration.name range_clause.left type_alias.name
def: type_switch_statement.alias
let: short_var_declaration.left const_spec.name var_spec.name receive_statement.left
tparam: type_parameter_declaration.name
up: expression_list literal_element
member: field_declaration.name method_declaration.name method_elem.name
access: selector_expression.field qualified_type.name
field: keyed_element.key
literal: composite_literal.type
import: import_spec.name
key: package_clause
label: labeled_statement.label
goto: break_statement continue_statement goto_statement
"""
_RUST = """
function: function_item closure_expression function_signature_item
block: block if_expression while_expression for_expression match_arm
class: impl_item trait_item struct_item enum_item union_item enum_variant
module: mod_item
outside: for_expression.value let_condition.value
outer: function_item.name struct_item.name enum_item.name trait_item.name type_item.name const_item.name
outer: static_item.name mod_item.name union_item.name function_signature_item.name enum_variant.name
outer/macro: macro_definition.name
use/macro: macro_invocation.macro
let: let_declaration.pattern
def: parameter.pattern closure_parameters for_expression.pattern let_condition.pattern match_pattern
tparam: type_parameter.name const_parameter.name
up: tuple_pattern slice_pattern ref_pattern reference_pattern mut_pattern or_pattern tuple_struct_pattern
up: field_pattern.pattern captured_pattern struct_pattern scoped_use_list.list
use: tuple_struct_pattern.type struct_pattern.type match_pattern.condition
member: field_declaration.name associated_type.name
access: field_expression.field scoped_identifier.name scoped_type_identifier.name
field: field_initializer.field field_pattern.name
literal: struct_expression.name struct_pattern.type
shorthand: shorthand_field_initializer
import: use_declaration.argument use_list use_as_clause.alias
key: use_as_clause.path lifetime
label: label
goto: break_expression>label continue_expression>label
"""
_JAVA = """
function: method_declaration constructor_declaration lambda_expression compact_constructor_declaration
block: block for_statement enhanced_for_statement try_with_resources_statement catch_clause constructor_body
block: switch_block_statement_group switch_rule
class: class_declaration interface_declaration enum_declaration record_declaration object_creation_expression
class: annotation_type_declaration
nested: unique
implicit: all
outside: object_creation_expression.arguments object_creation_expression.type enhanced_for_statement.value
outer: class_declaration.name interface_declaration.name enum_declaration.name record_declaration.name
outer/method: method_declaration.name
def: formal_parameter.name inferred_parameters lambda_expression.parameters catch_formal_parameter.name
def: resource.name enhanced_for_statement.name instanceof_expression.name record_pattern_component.+
def: spread_parameter
decl: local_variable_declaration.declarator
tparam: type_parameter
up: variable_declarator.name
member: field_declaration.declarator constant_declaration.declarator enum_constant.name
access: field_access.field scoped_type_identifier.+ scoped_identifier.name
access/method: method_invocation.name?object method_reference.+
use/method: method_invocation.name
import: import_declaration
key: element_value_pair.key package_declaration
label: labeled_statement
goto: break_statement continue_statement
"""
_C = """
function: function_definition
signature: declaration field_declaration type_definition preproc_function_def
block: compound_statement for_statement if_statement while_statement switch_statement
class: struct_specifier union_specifier
outer: function_definition.declarator preproc_def.name preproc_function_def.name
outer/tag: struct_specifier.name?body union_specifier.name?body enum_specifier.name?body
use/tag: struct_specifier.name union_specifier.name enum_specifier.name
def: enumerator.name
decl: declaration.declarator type_definition.declarator
param: parameter_declaration.declarator preproc_params
up: pointer_declarator.declarator array_declarator.declarator parenthesized_declarator
up: function_declarator.declarator init_declarator.declarator attributed_declarator
member: field_declaration.declarator
access: field_expression.field field_designator
label: labeled_statement.label
goto: goto_statement.label
"""
_CPP = f"""{_C.replace("/tag", "")}
function: lambda_expression
signature: template_declaration
block: for_range_loop catch_clause namespace_definition
class: class_specifier
receiver: function_definition
implicit: all
outside: for_range_loop.right
outer: class_specifier.name?body namespace_definition.name
use: class_specifier.name
def: for_range_loop.declarator lambda_capture_initializer.left
decl: alias_declaration.name
param: optional_parameter_declaration.declarator
tparam: type_parameter_declaration optional_type_parameter_declaration.name
up: reference_declarator structured_binding_declarator pointer_declarator variadic_declarator
access: qualified_identifier.name
own: field_initializer
import: using_declaration
"""
_CSHARP = """
function: method_declaration constructor_declaration local_function_statement lambda_expression
function: anonymous_method_expression indexer_declaration operator_declaration delegate_declaration
block: block for_statement foreach_statement using_statement catch_clause switch_section query_expression
class: class_declaration struct_declaration interface_declaration record_declaration
enum: enum_declaration
nested: unique
implicit: all
outside: foreach_statement.right
outer: class_declaration.name struct_declaration.name interface_declaration.name record_declaration.name
outer: enum_declaration.name method_declaration.name local_function_statement.name delegate_declaration.name
def: parameter.name parameter_list.name lambda_expression.parameters foreach_statement.left
def: catch_declaration.name declaration_pattern.name declaration_expression.name from_clause.name
def: let_clause.name tuple_pattern.name local_declaration_statement for_statement.initializer using_statement
tparam: type_parameter.name
up: variable_declarator.name variable_declaration
member: property_declaration.name enum_member_declaration.name field_declaration event_field_declaration
access: member_access_expression.name member_binding_expression.name qualified_name.name
field: initializer_expression>assignment_expression.left
literal: object_creation_expression.type
set: assignment_expression.left
use: variable_declaration.type
keyword: argument.name
import: using_directive.name
label: labeled_statement
goto: goto_statement
"""
_LUA = """
function: function_declaration function_definition
block: block for_statement
receiver: function_declaration
ordered: file
outside: for_generic_clause>expression_list for_numeric_clause.start for_numeric_clause.end
let: variable_declaration
up: variable_declaration>assignment_statement variable_list
def: parameters for_numeric_clause.name for_generic_clause
assign: assignment_statement function_declaration.name
access: dot_index_expression.field method_index_expression.method
key: field.name
label: label_statement
goto: goto_statement
"""
_RUBY = """
function: method singleton_method
block: block do_block lambda
class: class module
barrier: method singleton_method class module
implicit: all
outer: class.name module.name
outer/method: method.name
member/method: singleton_method.name
def: method_parameters block_parameters lambda_parameters optional_parameter.name splat_parameter.name
def: hash_splat_parameter.name keyword_parameter.name block_parameter.name block_parameters.locals
up: destructured_parameter left_assignment_list rest_assignment
var: assignment.left for.pattern exception_variable in_clause.pattern array_pattern keyword_pattern.value
access/method: call.method?receiver
use/method: call.method
access: scope_resolution.name
shorthand: argument_list>pair.key?!value pair.key?!value
keyword: argument_list>pair.key
key: pair.key keyword_pattern.key alias
"""
_PHP = """
function: function_definition method_declaration
block: anonymous_function arrow_function
class: class_declaration interface_declaration trait_declaration enum_declaration
barrier: function_definition method_declaration
outer: function_definition.name class_declaration.name interface_declaration.name trait_declaration.name
outer: enum_declaration.name
outer/method: method_declaration.name
def: simple_parameter.name variadic_parameter.name property_promotion_parameter.name const_element
var: assignment_expression.left foreach_statement.+ foreach_statement>pair catch_clause.name
var: static_variable_declaration.name
up: variable_name list_literal by_ref
use: const_element.+
member: property_element.name enum_case.name
access: member_access_expression.name scoped_property_access_expression.name
access: class_constant_access_expression.+ nullsafe_member_access_expression.name
access/method: member_call_expression.name scoped_call_expression.name nullsafe_member_call_expression.name
keyword: argument.name
global: global_declaration
import: namespace_use_clause
label: named_label_statement
goto: goto_statement
"""


TEXTS = {
    "c": _C,
    "cpp": _CPP,
    "csharp": _CSHARP,
    "go": _GO,
    "java": _JAVA,
    "javascript": _JAVASCRIPT,
    "javascriptreact": _JAVASCRIPT,
    "lua": _LUA,
    "php": _PHP,
    "python": _PYTHON,
    "ruby": _RUBY,
    "rust": _RUST,
    "typescript": _TYPESCRIPT,
    "typescriptreact": _TYPESCRIPT,
}
