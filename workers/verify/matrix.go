package verify

import "errors"

var errRagged = errors.New("the rows of a matrix have different lengths")

var errShape = errors.New("matrices of these shapes cannot be combined")

// matrixSum adds matrices of one shape.
func matrixSum(terms []*node) (*node, error) {
	out := *terms[0]
	out.args = append([]*node(nil), out.args...)
	for _, t := range terms[1:] {
		if t.kind != kMatrix || t.cols != out.cols || len(t.args) != len(out.args) {
			return nil, errShape
		}
		for i, a := range t.args {
			out.args[i] = sum(out.args[i], a)
		}
	}
	return &out, nil
}

// matrixProduct multiplies two matrices, or a matrix by a number.
func matrixProduct(a, b *node) (*node, error) {
	if a.kind != kMatrix {
		a, b = b, a
	}
	out := &node{kind: kMatrix, cols: b.cols}
	if b.kind != kMatrix {
		out.cols = a.cols
		for _, cell := range a.args {
			out.args = append(out.args, product(b, cell))
		}
		return out, nil
	}
	rows, inner := len(a.args)/a.cols, len(b.args)/b.cols
	if a.cols != inner || rows*b.cols*inner > maxNodes {
		return nil, errShape
	}
	for r := range rows {
		for c := range b.cols {
			cell := make([]*node, inner)
			for k := range inner {
				cell[k] = product(a.args[r*a.cols+k], b.args[k*b.cols+c])
			}
			out.args = append(out.args, sum(cell...))
		}
	}
	return out, nil
}
